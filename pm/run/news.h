/* What keelrun tells about deaths: one line for each, with what was done about it, and one at the end. Pure: what
 * happened goes in, lines come out.
 *
 * A rank's death is told when its outcome is known: it begins again on its node, or a view leaves it out. A node's
 * death is told when the first view without it comes, which also says where its ranks continue, "if the program calls
 * keel_init" where it has not yet. A rank that is moved while its node lives is not told; from then on it is where the
 * views say. That a node could not start a rank is told at once, and where it continues with the view. */
#ifndef KEEL_PM_NEWS_H
#define KEEL_PM_NEWS_H

#include "pm/wire/fault.h"
#include "runtime/base/replica.h"

#include <stdbool.h>
#include <stdint.h>

struct news_rank {
    int node;     /* that runs it, -1: none */
    bool done;    /* ended by itself */
    int restarts; /* on a live node, after a death of its own */
    /* a death whose outcome is not known yet; signal 0: none, or SIGNAL_HIDDEN */
    int signal, pid, died_at;
    bool refused; /* its node could not start it, and no view yet says who does */
    bool lost;    /* for good: that was told */
};

struct news {
    int nodes, total, ranks; /* total: with spares, and room for those that come later */
    char **names;            /* of hosts, [total], or NULL */
    struct news_rank *rank;
    bool *alive;
    const struct replica_map *replicas; /* NULL: the program runs once */
    bool retired[REPLICAS_MAX];         /* that was told of the set */
    int served[REPLICAS_MAX];           /* 1 + the native rank that it lost first and went on without; 0: none */
    bool keels;                         /* the program has called keel_init, or need not: it goes on after a loss */
    const char *method;                 /* by which slots move on a grid, NULL: there is none */
    int free; /* nodes of the grid that no slot is on or goes to, in the view that comes next */
    uint64_t epoch;
    uint64_t begin_ns;
    int lost_nodes, lost_ranks, lost_sets, lost_replicas, restarts, returned;
    double late_ms;     /* the worst that was told */
    struct fault fault; /* the first rank that crashed and was left out */
    void (*say)(void *user, const char *line);
    void (*say_waits)(void *user, const char *line); /* what is waited for; NULL: say */
    void *user;
};

/* rank_node: where each rank starts. names and the say function are kept, rank_node is copied. */
void news_init(struct news *n, int nodes, int spares, int room, int ranks, const int *rank_node, char **names,
               void (*say)(void *user, const char *line), void *user);
void news_fini(struct news *n);
void news_started(struct news *n, uint64_t now_ns);
/* A process of the job has called keel_init, or the job goes on whatever the program is. */
void news_keels(struct news *n);
/* A process of a rank ended on that node; signal 0: by itself. */
void news_ended(struct news *n, int node, int rank, int pid, int signal);
/* A rank goes on in a new process on that node. */
void news_begun(struct news *n, int node, int rank);
/* A process of the rank (-1: one that would wait for a rank) could not be started on that node. */
void news_refused(struct news *n, int node, int rank, const char *why);
/* A committed view. Every agent reports each one: those that were heard before are left out. */
void news_view(struct news *n, uint64_t epoch, const int *rank_node, const bool *alive, uint64_t now_ns);
/* Of a program with replicas, where ranks' deaths are told by this alone: loss[REPLICAS_MAX]. The last set's is told by
 * the end of the job. */
void news_sets(struct news *n, const struct replica_loss *loss);
/* Where replicas do the part of the dead: a set goes on without a process, and that of set `by` writes for it. */
void news_partner(struct news *n, const struct replica_loss *loss, int by);
/* The node was late by more than the limit for silence that the user has chosen allows for. Told again when it, or
 * another, is twice as late. */
void news_late(struct news *n, int node, double by_ms, int silence_ms);
/* A node that had been declared dead is another one now. */
void news_returned(struct news *n, int was, int node, uint64_t dead_ms);
/* A node is new. */
void news_added(struct news *n, int node);
/* The node hears too few of the others, and ends after that time if that stays so. */
void news_cut_off(struct news *n, int node, double limit_ms);
/* Of the method auto: what it has chosen for the slot that lost its node, or (-1) for all; moves: slots
 * that go; why: a reason of few words; prices: of each candidate. */
void news_auto(struct news *n, int slot, const char *chose, int moves, const char *why, const char *prices);
/* The job is over. */
void news_over(struct news *n, int code);
/* "node 2 (n5)" */
const char *news_node(const struct news *n, int node, char *out, unsigned size);
#endif
