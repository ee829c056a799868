/* Between reading keelrun's options (options.c) and making sense of them (options_check.c). */
#ifndef KEEL_PM_OPTIONS_PARTS_H
#define KEEL_PM_OPTIONS_PARTS_H

#include "pm/run/options.h"

enum { MODE_COPIES = VIEW_ABORT + 1 }; /* VIEW_DEGRADE, but for what degrade says of ranks that crash */

/* As they are written; NULL: not given. */
struct grid_options {
    const char *shape, *torus, *spares, *method, *dead, *positions;
    bool moves_given;
    const int *place_of; /* [hosts] known without a file; NULL: not */
};

/* What --grid auto has found. */
struct grid_found {
    char shape[GRID_TEXT_MAX];
    const char *torus; /* as --torus, NULL: none */
    int *place_of;     /* [hosts] for free(); NULL: the file of positions says it */
};

struct replica_options {
    int count;       /* 0: not given */
    const char *map; /* a file; NULL: not given */
    bool check_given, on_mismatch_given, on_death_given, world_given, files_given, copies_given;
};

struct parsing {
    struct options o;
    int dark_ms;
    const char *at_fault; /* the argument that could not be understood */
    struct grid_options grid;
    struct replica_options replicas;
    bool on_failure_given, room_given, nodes_given, spares_given, stopped_given;
    bool hosts_given, list_given, file_given; /* hosts: by either of the others, or by a batch system */
    int on_failure;                           /* enum view_policy, or MODE_COPIES */
    const char *watch_file;
};

/* Ends the program with one line and exit code 2 if they are not good together. o has what p->o has. */
void options_check(struct options *o, struct parsing *p);
/* --grid auto; ends the program with a line that says what was looked for, and exit code 2, where nothing is known. */
void options_auto(const struct options *o, const struct grid_options *said, struct grid_found *f);
/* Of options_check: the settings of the grid, and who has which number on it; after hosts are known, before ranks are
 * laid out. */
void options_grid(struct options *o, const struct parsing *p);
/* Of options_check, in this order: what is said of replicas, and how many nodes there are, when the program's ranks
 * and hosts are known; where ranks start, which makes ranks those of all sets (false: as without replicas); who is
 * who, when it is known which nodes fail together. */
void options_replicas(struct options *o, const struct parsing *p);
bool options_replicas_lay_out(struct options *o, const struct parsing *p);
void options_replicas_map(struct options *o, const struct parsing *p);
/* After all of these: whom rules for wrong bits name. */
void options_inject(const struct options *o);
#endif
