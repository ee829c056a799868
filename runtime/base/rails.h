/* Which networks connect the nodes of a job, as the user names them, and a host's own addresses in them. The first one
 * is used first. */
#ifndef KEEL_BASE_RAILS_H
#define KEEL_BASE_RAILS_H

#include <stdbool.h>
#include <stddef.h>

enum { RAILS_MAX = 4, RAIL_NAME_MAX = 48, RAIL_HOST_MAX = 64 };

/* Interfaces (eth1), which have the same name on all hosts, or subnets (10.1.0.0/16). n 0: the user names none. */
struct rail_list {
    int n;
    char name[RAILS_MAX][RAIL_NAME_MAX];
};

/* Numeric addresses, one a rail. */
struct rail_hosts {
    int n;
    char of[RAILS_MAX][RAIL_HOST_MAX];
};

#define RAILS_ENV "KEEL_RAILS"

/* Of "A,B,...". False: why says what is wrong, without whose word it is. Pure. */
bool rails_parse(const char *text, struct rail_list *out, char *why, size_t size);
/* May this be one? */
bool rails_name_good(const char *name);
/* This host's address in each of them, all of one family. False: why names the rail and what this host has. */
bool rails_find(const struct rail_list *rails, struct rail_hosts *out, char *why, size_t size);
#endif
