/* What the user asks of a job that each of its agents must know. keelrun's command line fills it in, the job's
 * description carries it (pm/wire/settings.h), and the parts of an agent are made with it: nothing of it is named or
 * numbered a second time on the way. */
#ifndef KEEL_BASE_JOB_SETTINGS_H
#define KEEL_BASE_JOB_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "runtime/base/address_range.h"
#include "runtime/base/flip.h"
#include "runtime/base/rails.h"
#include "runtime/base/replica.h"

/* After a node's death: go on elsewhere, go on with those that are left, or end. */
enum view_policy { VIEW_SUBSTITUTE, VIEW_DEGRADE, VIEW_ABORT };
/* How heartbeats are read. */
enum probe_choice { PROBE_AUTO, PROBE_VERBS, PROBE_OFI };
/* What carries the data between nodes: libfabric's provider. AUTO: verbs, if all nodes have a device. */
enum provider_choice { PROVIDER_TCP, PROVIDER_VERBS, PROVIDER_AUTO };
/* Who reads whose. */
enum member_topology { MEMBER_RING, MEMBER_TORUS, MEMBER_HYPERCUBE, MEMBER_RANDOM, MEMBER_FILE };

/* On which nodes the further copies of a node's data are (view/policy.h). */
enum copies_at { COPIES_AT_HALF, COPIES_AT_NEXT };
/* Nodes of one domain fail together. Domains of a level are parts of those of the next one: hosts, racks, switches. */
enum { DOMAIN_LEVELS_MAX = 5 };

struct copy_rule {
    enum copies_at at;
    int levels;      /* of domains that are known; 0: each node fails alone */
    bool hosts_told; /* the first level are hosts, else racks */
    int *domain;     /* [levels][nodes+spares+room] a number from 0 on for each */
};

/* The grid on which the nodes stand, as the user says it and topo/rule.h reads it. */
enum { GRID_TEXT_MAX = 96, GRID_MOVES_MAX = 1 << 20, GRID_PLANS_MAX = 1 << 20 };
struct grid_choice {
    char grid[GRID_TEXT_MAX];   /* "4x4t"; empty: nobody knows of one, and the rest says nothing */
    char spares[GRID_TEXT_MAX]; /* "2D(2,1)" */
    char method[GRID_TEXT_MAX]; /* "hybrid(all)" */
    int moves;                  /* that one failure may cost; 0: any number */
    int *dead;                  /* [ndead] places whose node is not there at the start, in the order of the news */
    int ndead;
    int *plans; /* [nplans] the user's: for each failure the place, the number of moves, and from and to of each */
    int nplans;
};

enum {
    SILENCE_DEFAULT_MS = 3000,
    SILENCE_MIN_MS = 200,
    SILENCE_MAX_MS = 600000,
    STOPPED_DEFAULT_MS = 30000,
    STOPPED_MIN_MS = 1000,
    STOPPED_MAX_MS = 86400000,
    STOPPED_NEVER_MS = 0,
    LATE_DEFAULT_MS = 150,
    LATE_MAX_MS = 30000
};
enum { SCRUB_OFF = 0, SCRUB_MAX_MB = 10000 };
enum { JOB_ERA_S = 1577836800 }; /* 2020-01-01 */
enum { WATCHERS_MAX = 16 };      /* nodes that one reads */

struct job_settings {
    int nodes;      /* that hold ranks at the start */
    int spares;     /* nodes beside them; they come last */
    int room;       /* ids behind theirs, for nodes that join later */
    int ranks;      /* processes at the start: of all sets, where the program has replicas */
    int *rank_node; /* [ranks] where each starts */
    enum view_policy on_failure;
    /* VIEW_DEGRADE by the user, not as the default without spares: a rank that dies of its own fault is no failure */
    bool degrade_asked;
    bool secure; /* data connections are encrypted and authenticated */
    enum provider_choice provider;
    enum probe_choice probe;
    enum member_topology topology;
    int *edges; /* MEMBER_FILE: [edge_count][2] reader, watched */
    int edge_count;
    struct copy_rule copies;
    struct grid_choice grid;
    int silence_ms; /* after which a node is dead whose host does not answer either */
    int stopped_ms; /* after which it is where its host answers and somebody waits for it; STOPPED_NEVER_MS: never */
    int late_ms;    /* after which a heartbeat is late */
    int scrub_mb;   /* that each agent's scrubber reads in a second; SCRUB_OFF: there is none */
    struct address_range range;
    struct rail_list rails;      /* networks between the nodes; none: the one that leads to keelrun */
    struct replica_map replicas; /* who of the ranks is who for the program */
    enum replica_check check;
    enum replica_mismatch on_mismatch;
    struct flip_rules inject;        /* wrong bits on purpose */
    enum replica_share world, files; /* clocks, random bytes and names; files: of all sets, or of each its own */
    enum replica_share set_copies;   /* of each segment in a set: one, or all that it was allocated with */
    enum replica_death on_death;     /* of a process of a set */
    int began_s;                     /* the job, in seconds since JOB_ERA_S */
};

/* The settings of one value, as they travel: member, key, and which values it may have (FLAG: yes or no; CHOICE: an
 * enum, from 0 to the last). Whatever writes, reads or tests settings goes through this list, so that a member with its
 * line here reaches every agent; sizes and arrays are pm/wire/settings.c's. */
#define JOB_SETTINGS_LIST(NUMBER, FLAG, CHOICE)                                                                        \
    CHOICE(on_failure, "on_failure", VIEW_ABORT)                                                                       \
    FLAG(degrade_asked, "degrade_asked")                                                                               \
    FLAG(secure, "secure")                                                                                             \
    CHOICE(provider, "provider", PROVIDER_AUTO)                                                                        \
    CHOICE(probe, "probe", PROBE_OFI)                                                                                  \
    CHOICE(topology, "topology", MEMBER_FILE)                                                                          \
    CHOICE(copies.at, "copies_at", COPIES_AT_NEXT)                                                                     \
    FLAG(copies.hosts_told, "hosts_told")                                                                              \
    CHOICE(check, "check", CHECK_ALL)                                                                                  \
    CHOICE(on_mismatch, "on_mismatch", MISMATCH_KEEP)                                                                  \
    CHOICE(world, "world", SHARE_ALL)                                                                                  \
    CHOICE(files, "files", SHARE_ALL)                                                                                  \
    CHOICE(set_copies, "set_copies", SHARE_ALL)                                                                        \
    CHOICE(on_death, "on_death", DEATH_PARTNER)                                                                        \
    NUMBER(began_s, "began", 0, INT_MAX - 1)                                                                           \
    NUMBER(silence_ms, "silence", SILENCE_MIN_MS, SILENCE_MAX_MS)                                                      \
    NUMBER(stopped_ms, "stopped", STOPPED_NEVER_MS, STOPPED_MAX_MS)                                                    \
    NUMBER(late_ms, "late", 1, LATE_MAX_MS)                                                                            \
    NUMBER(scrub_mb, "scrub", SCRUB_OFF, SCRUB_MAX_MB)

static inline bool settings_on_grid(const struct job_settings *s)
{
    return s->grid.grid[0] != '\0';
}

/* Node ids: what is kept for each node is kept for so many. */
static inline int settings_ids(const struct job_settings *s)
{
    return s->nodes + s->spares + s->room;
}

/* A rank's first process that is killed before any process of its node has called keel_init ends the job: a program
 * without Keel cannot go on without it; another set of it can. */
static inline bool settings_plain_death_ends(const struct job_settings *s)
{
    return !s->degrade_asked && s->on_failure != VIEW_ABORT && !replica_map_is_used(&s->replicas);
}
#endif
