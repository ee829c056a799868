/* What the files of hosts.h have in common: hosts.c reads one host and keeps lists, hosts_file.c reads files and
 * what batch systems say. */
#ifndef KEEL_PM_HOSTS_READ_H
#define KEEL_PM_HOSTS_READ_H

#include "pm/run/hosts.h"

/* A part of the text that is read. */
struct piece {
    const char *at;
    size_t len;
};

/* What is being read, and where a complaint goes. */
struct reading {
    struct host_list *hosts;
    char *why;
    size_t why_size;
    int line; /* of a file; 0: no file */
};

/* What is said of a host beside its name. */
struct said {
    struct piece user;
    int slots, most; /* 0: nothing */
};

/* For "%.*s". */
#define SHOWN(p) ((p).len < 100 ? (int)(p).len : 100), (p).at

/* Returns false. */
bool hosts_complain(const struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text up to a character, which is taken away with it; all of it if it is not there. */
struct piece piece_cut(struct piece *rest, char at);
bool piece_number(struct piece p, int *value);
bool piece_is_user(struct piece p);
/* A number of slots, or a complaint that begins with what. */
bool hosts_said_number(const struct reading *r, const char *what, struct piece text, int *value);
/* user@name[1-4]:slots, into the list. */
bool hosts_read_host(const struct reading *r, struct piece name, struct said *said);
#endif
