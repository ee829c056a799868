/* Who waits for whom, and why: what agents report of waits that last (MSG_WAITS) is put together here, for the terminal
 * and for keelctl. Pure: reports and the time go in, lines come out.
 *
 * A rank waits for another, which may itself wait: the line names the end of that chain, and all who wait for it. A
 * report is {"now_ns", "waits": [{"rank", "call", "whom", "for_rank", "for_node", "since_ns"}], "stopped": [rank],
 * "silent": [{"node", "since_ns", "host"}], "links": [[a, b]], "behind": [node], "view", "dying": [node]}; its times
 * are the agent's, and become ages. Who waits for an answer of that node waits for those behind it, whose copies have
 * acknowledged nothing; and while a view is being made (the death of the dying ones), for whoever is silent, as a view
 * needs all that live.
 *
 * A line is right where something stands in the way, or where nobody would wait for so long on purpose. Ranks that
 * compute for a long time while others wait for them in a barrier are usual:
 *
 * A node that does not answer is told with who waits for it in one line: what its readers say of it (waits_patience) is
 * held back for a moment in which waits may be reported, and is told alone if there are none.
 *
 *   stopped, silent, link              after 1 s, 30 s, and then each minute
 *   ring, node, view, memory, leaving  after 5 s, 30 s, and then each minute
 *   all others                         after 1 min, 10 min, and then each hour */
#ifndef KEEL_PM_WAITS_H
#define KEEL_PM_WAITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/replica.h"

enum waits_why {
    WAITS_STOPPED, /* rank a is stopped */
    WAITS_SILENT,  /* node a is silent; b: its host answers */
    WAITS_LINK,    /* the link between nodes a and b is broken, and both ends wait */
    WAITS_RING,    /* rank a waits, by way of others, for itself */
    WAITS_NODE,    /* the agent of node a has not answered */
    WAITS_VIEW,    /* a view, or copies that are made equal */
    WAITS_MEMORY,  /* rank a has none for what it does */
    WAITS_LEAVING, /* rank a has not left its node, and the memory that is waited for follows when it has */
    /* rank a has the lock, or the task, and is not in Keel; -1: some rank; of a rank's own: another thread */
    WAITS_HOLDER,
    WAITS_ENTRY,  /* rank a has not come to the call */
    WAITS_WORD,   /* rank a (-1: any) has not sent it */
    WAITS_TAKING, /* rank a has not taken what was sent to it */
};

enum { WAITS_CALL = 48, WAITS_LINE = 400 };

struct waits_entry {
    int rank;
    char call[WAITS_CALL];
    enum waits_why whom; /* NODE to TAKING */
    int for_rank, for_node;
    uint64_t since_ns; /* by our clock */
};

struct waits_node {
    struct waits_entry *entry;
    int entries;
    int *stopped, stopped_n;
    struct waits_silent {
        int node;
        bool host;
    } * silent;
    int silent_n;
    int (*link)[2];
    int links;
    int *behind, behind_n;
    int *dying, dying_n;
    bool view;
};

/* One that some wait for. */
struct waits_reason {
    struct waits_reason *next;
    enum waits_why why;
    int a, b;
    char call[WAITS_CALL]; /* of the first rank */
    bool calls;            /* and others */
    bool direct;           /* some wait for it, and not for a view that needs its answer */
    bool others;           /* some wait for it that are other ranks */
    bool *rank;            /* [ranks] that wait */
    int n;
    uint64_t since_ns;          /* of the first wait */
    uint64_t first_ns, last_ns; /* when it was found first, and last */
    uint64_t begun_ns;          /* of the first wait that was told, which may be over */
    unsigned lines;             /* so many were said */
    bool doubted;               /* a line said how it is with the node: others tell that it answers again, or is dead */
};

/* How it is with a node that does not answer. */
struct waits_doubt {
    char how[WAITS_CALL + 16], why[WAITS_CALL + 16]; /* how "": it answers, as far as is known */
    double limit_ms;                                 /* -1: none */
    bool waited_for;
    bool due;          /* is to be said */
    bool told;         /* something was */
    uint64_t since_ns; /* due */
    uint64_t alone_ns; /* it was told alone, and with a limit, 0: never */
};

struct waits {
    int nodes, ranks;
    int *rank_node; /* [ranks] -1: nobody runs it */
    struct waits_node *node;
    struct waits_doubt *doubt;          /* [nodes] */
    char **names;                       /* of hosts, [nodes], or NULL: the owner's, who may set it */
    const struct replica_map *replicas; /* who of the ranks is who: likewise; NULL: they are the program's */
    bool doubts;                        /* the owner, who sets it, calls waits_patience */
    struct waits_reason *reasons;
    void (*say)(void *user, const char *line);
    void *user;
};

void waits_init(struct waits *w, int nodes, int ranks, const int *rank_node, void (*say)(void *user, const char *line),
                void *user);
void waits_fini(struct waits *w);
/* Who runs where now, and which nodes live (NULL: all): those that do not say nothing any more. */
void waits_view(struct waits *w, const int *rank_node, const bool *alive);
/* What a node's agent says of its ranks; in place of what it said before. NULL: nothing. */
void waits_report(struct waits *w, int node, const json_t *report, uint64_t now_ns);
/* What a reader says of a node: how it is, for how long it is waited for (-1: without end) and why longer than
 * usual. */
void waits_patience(struct waits *w, int node, const struct waits_doubt *said, uint64_t now_ns);
void waits_answers(struct waits *w, int node);
/* Say what is to be said. Returns when to look again, UINT64_MAX: at the next report. */
uint64_t waits_tick(struct waits *w, uint64_t now_ns);
/* The i-th wait of the node's ranks, for a person; false: there is none. */
bool waits_text(const struct waits *w, int node, int i, uint64_t now_ns, int *rank, char line[WAITS_LINE]);
bool waits_is_stopped(const struct waits *w, int rank);

/* For waits_read.c. */
void waits_node_clear(struct waits_node *n);
#endif
