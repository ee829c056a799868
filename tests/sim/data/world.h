/* The simulated system: nodes, each with the agreement core (detect/member.h) and the data half of an agent
 * (runtime/agent), and ranks with the code of libkeel (runtime/client), joined by a simulated network, under virtual
 * time and from one seed. README.md says what is checked. */
#ifndef KEEL_TESTS_SIM_DATA_WORLD_H
#define KEEL_TESTS_SIM_DATA_WORLD_H

#include "detect/member.h"
#include "runtime/agent/agent.h"
#include "runtime/client/client.h"
#include "tests/sim/data/net.h"
#include "tests/sim/data/pages.h"
#include "tests/sim/data/sched.h"

enum { NODES_MAX = 18, RANKS_MAX = 16, AIMS_MAX = 8, POINTS_MAX = 128 };
enum { DEAD_MAX = 4, PLANS_MAX = 96 };

struct world;
struct model;
struct program;
struct replicas;
struct flips;
struct api_calls;

/* What the agreement core, and the node's processes, tell the agent's data thread. */
enum command_type {
    COMMAND_STARTED,
    COMMAND_EXITED,
    COMMAND_REFUSED, /* no process could be started for the rank's life */
    COMMAND_MOVE,    /* the node's rank to node */
    COMMAND_WEIGH,   /* this node has measured value, or its user asks (agent/weighing.h); kind of it in code */
    COMMAND_CONTROL,
    COMMAND_PREPARE,
    COMMAND_COMMIT,
    COMMAND_SETTLED,
    COMMAND_DOOMED,
    COMMAND_SUSPECTED,
    COMMAND_CLEARED,
    COMMAND_HALT,
};

struct command {
    struct command *next;
    enum command_type type;
    struct runner *runner;
    int node, rank;
    uint32_t incarnation;
    int code, signal;
    bool moved; /* it ended because it was released */
    uint32_t order;
    uint64_t epoch, value;
    int n;
    struct view_event event[MEMBER_EVENTS_MAX];
    struct control control;
};

/* Something that waits for a frozen node's helper thread. */
struct deferred {
    struct deferred *next;
    sched_run *run;
    void *arg;
    uint64_t n;
};

struct node {
    struct world *w;
    int id;
    struct process process; /* the agent's data thread */
    struct heap helper_heap;
    struct agent agent;
    struct page *page;
    void *hall; /* of its ranks */
    size_t hall_bytes;
    struct member *member;
    struct tp *net, *shm;
    struct command *commands, **commands_tail;
    struct deferred *deferred, **deferred_tail;
    uint64_t helper_at; /* when the last request to the helper arrives */
    uint64_t tick_at;
    bool watched[NODES_MAX];
    bool dead, off, halted, over;
    bool working;       /* its agent is in the middle of something */
    uint64_t frozen_at; /* heartbeat of a frozen node */
    uint64_t rounds;
    int new_copies; /* asked for */
};

/* A piece of a node's memory: the agent's, and its ranks' that map it. */
struct memory {
    struct memory *next;
    int node;
    uint8_t *base;
    struct pages *pages; /* of large ones: what was written when */
    size_t bytes;
    int64_t handle;
    int refs;
    bool agents; /* its agent has not given it back */
};

enum runner_state { RUNNER_STANDBY, RUNNER_RUNS, RUNNER_ENDED };

/* A rank's process. */
struct runner {
    struct runner *next;
    struct world *w;
    struct node *node;
    int id, rank; /* rank -1: standby */
    uint32_t incarnation;
    enum runner_state state;
    struct process process;
    struct client client;
    bool joined; /* client_init was called */
    struct control_welcome welcome;
    struct intent_page *intents; /* in this memory: a process maps it, on a whole page */
    void *intents_memory;
    bool released, moved; /* it is to end so that the rank goes on elsewhere; it has */
    uint64_t releases;    /* and stays: so many times */
    uint64_t went_at;     /* 1 + collectives behind which it went, by itself, where it was asked to go first, */
    uint64_t asked_ns;    /* then */
    struct tp *net, *shm;
    struct tp_ep *own;
    uint64_t turn_ns; /* a processor that was given up comes back after up to so long */
    uint32_t request; /* number of the last one */
    bool asks, answered;
    struct control answer;
    struct memory *answer_memory;
    struct program *program;
    const struct api_calls *calls; /* what its program calls, once there is a wrapper; NULL: below_calls */
    uint64_t fences;               /* that its program has called */
    bool dumped;
    int at_gate;      /* 1 + the gate it waits at, 0: none */
    uint64_t entered; /* of the collectives of all live ranks */
    uint64_t met_at;  /* those it did not need to enter, and the one that it may repeat */
    uint64_t seen,
        met_seen; /* the view that it knew when it entered the last one, and of that one when it is through */
    bool leaving, killed;
};

enum disaster {
    DISASTER_RANK_KILL,
    DISASTER_NODE_KILL,
    DISASTER_NODE_OFF,
    DISASTER_RANK_FREEZE,
    DISASTER_AGENT_FREEZE,
    DISASTER_NODE_FREEZE,
    DISASTER_CUT,
    DISASTER_BREAK,
    DISASTERS,
};

/* Something that is to happen at the k-th passing of a fault point. */
/* PAIR: the rank, and soon before or after it a node. */
enum aim_action { AIM_KILL, AIM_NODE, AIM_OFF, AIM_FREEZE, AIM_FREEZE_NODE, AIM_STALL, AIM_PAIR };
struct aim {
    char point[48];
    unsigned nth, passed;
    int node, rank; /* -1: any */
    enum aim_action action;
    uint64_t ns; /* of a freeze */
    bool flips;  /* only the process in whose memory a bit has flipped, from then on */
    bool done;
};

struct point {
    const char *name;
    uint64_t passed, acted;
};

/* What a run is like. scenario.c fills it in. */
struct setup {
    const char *scenario;
    uint64_t seed;
    bool verbose, trace;
    int nodes, spares, joiners, ranks, rank_node[RANKS_MAX]; /* joiners: that come later */
    uint64_t join_at[NODES_MAX];                             /* each of them */
    int join_was[NODES_MAX], join_place[NODES_MAX];          /* as in member_params */
    bool returns[NODES_MAX];                                 /* it comes when a view has a node dead, and is that one */
    bool checked;                                            /* they compare what they do, as check says */
    enum replica_check check;
    enum replica_death on_death;
    bool plain; /* and all that they do a partner can do, as one does for the dead */
    enum replica_flip { FLIP_NONE, FLIP_SENDER, FLIP_TARGET } flip; /* of a bit of what is put, in one set */
    int sets, native[RANKS_MAX]; /* runs of the program side by side, 0: it runs once; as in struct replica_map */
    enum view_policy policy;
    struct {
        const char *nodes, *layout, *method;
        int moves; /* that a failure may cost, 0: any number */
        int dead[DEAD_MAX], ndead;
        int plans[PLANS_MAX], nplans; /* struct grid_choice */
    } grid;                           /* on which the nodes stand (view/plan.h); NULL: on none */
    enum copies_at copies_at;
    int domain_levels, domain[2 * NODES_MAX]; /* struct copy_rule */
    uint64_t timeout_ns;                      /* of operations */
    int rounds;                               /* of the program */
    int actions;                              /* per round and rank */
    int disasters;                            /* random ones */
    int moves;                                /* of ranks that live to nodes that live */
    int scrubs;                               /* blocks that the scrubber suspects; 0: there is none */
    bool flips;                               /* of bits in copies at rest, and the scrubber is on */
    int weighings;                            /* figures that agents say, and questions whether ranks should move */
    int refusals;                             /* processes that cannot be started where one is to begin */
    int sticks;                               /* answers that stay where they are, though who owes them lives */
    double yield;                             /* at a fault point */
    uint64_t fail_at;   /* the n-th allocation of fail_rank's process, or of fail_node's agent, fails; 0: none does */
    uint64_t fail_more; /* and so many behind it */
    int fail_rank, fail_node; /* one of them -1 */
    bool fail_again;          /* in each process of the rank, not in the first one only */
    bool each;                /* the same run again and again: every allocation fails in one of them */
    bool kills;               /* in such a run a rank that gets no memory ends by a signal, not with the job */
    double exits;             /* of a rank in a stage, with 0 and without keel_finalize */
    int room[NODES_MAX];      /* so many new copies a node has memory and descriptors for; -1: all */
    bool scant;               /* nodes have no memory for segments that nothing else needs */
    struct aim aim[AIMS_MAX];
    int aims;
    bool wide;                       /* mostly puts of more than 16 KiB */
    bool triple;                     /* three copies of everything, with large puts into each segment */
    int mutexes;                     /* per rank, 0: none */
    int threads;                     /* of a rank, that do beside it what it does */
    bool signals;                    /* words that ranks wait for */
    bool stores;                     /* plain ones, into the ranks' own parts */
    bool uneven, grouped;            /* parts of different sizes; a segment of a group */
    bool keeps;                      /* ranks commit, and go back to, memory of their own */
    bool quiet;                      /* nothing goes wrong */
    bool whole;                      /* each check looks at all of everything */
    unsigned kinds;                  /* of disasters, a bit each; 0: all */
    void (*script)(struct world *w); /* instead of random disasters */
};

static inline struct copy_rule setup_copies(const struct setup *s)
{
    return (struct copy_rule){.at = s->copies_at, .levels = s->domain_levels, .domain = (int *)s->domain};
}

struct world {
    struct setup setup;
    struct sched sched;
    struct net net;
    int members;
    struct node node[NODES_MAX];
    struct runner *runners;
    int next_runner;
    struct memory *memory;
    int64_t next_handle;
    struct model *model;
    struct replicas *replicas; /* NULL: the program runs once */
    struct flips *flips;
    bool flipped; /* a bit is wrong somewhere: checks wait until the scrubber has mended it */
    bool healing; /* no more disasters: progress is demanded */
    bool failed, done;
    uint64_t healed_at;
    uint64_t over_at;        /* all agents know that the job is over, 0: not yet */
    int rack[2 * NODES_MAX]; /* where nodes stand, as setup.domain has them */
    int restored_said, reduced_said, lost_said;
    uint64_t deaths; /* of nodes */
    uint64_t moves;  /* of ranks that were released */
    int refused;     /* of setup.refusals */
    int gates;       /* quiet moments that are over: ranks do not go beyond the next one */
    bool hopeless;   /* the data of the runtime itself are lost: nothing more is demanded */
    char why[400];
};

extern struct point sim_point[POINTS_MAX];
extern int sim_points;

/* world.c */
bool world_run(const struct setup *setup);
__attribute__((format(printf, 2, 3))) void world_fail(struct world *w, const char *fmt, ...);
void world_also(struct world *w, const char *more); /* about the failure */
__attribute__((format(printf, 2, 3))) void world_say(struct world *w, const char *fmt, ...);
/* With --trace. */
#define world_trace(w, ...)                                                                                            \
    do {                                                                                                               \
        if ((w)->setup.trace)                                                                                          \
            world_say(w, __VA_ARGS__);                                                                                 \
    } while (0)
struct runner *world_rank(const struct world *w, int rank); /* the living process of the rank, or NULL */
bool world_node_up(const struct world *w, int node);        /* not dead (but perhaps frozen or cut off) */
extern struct world *world_now;                             /* the one that runs */
extern bool world_spared; /* the run that was did not come to the allocation that was to fail */

/* dump.c */
void world_dump(struct world *w, const struct runner *r);

/* node.c */
void node_init(struct world *w, int id);
void node_joins(struct world *w, int id); /* when its turn has come */
void node_start(struct node *n);
void node_fini(struct node *n);
void node_kill(struct node *n, bool off); /* the agent and, soon, its ranks; off: with its host, silently */
void node_freeze(struct node *n, bool ranks, uint64_t ns);
void node_command(struct node *n, const struct command *c);

/* helper.c: the helper thread, which owns the agreement core */
bool helper_init(struct node *n);
void helper_start(struct node *n);
void helper_thawed(struct node *n);
void helper_died(struct node *dead); /* its connections break, unless the host is off */
void helper_fini(struct node *n);
struct agent_ops helper_ops(struct node *n); /* those that are for it */

/* rank.c: a rank's process */
struct runner *runner_new(struct node *n, int rank, uint32_t incarnation);
void runner_welcome(struct runner *r); /* inside the agent: it gets its rank */
void runner_kill(struct runner *r, int signal);
void runner_exit(struct runner *r, int code); /* by itself; does not return */
void runner_release(struct runner *r);        /* inside the agent: it is to end as moved */
void runner_stay(struct runner *r);           /* and is not any more */
void runner_freeze(struct runner *r, uint64_t ns);
void runner_answer(struct runner *r, const struct control *reply, int64_t handle);
void runner_free(struct runner *r);
struct memory *memory_find(struct world *w, int64_t handle);
struct memory *memory_at(const struct world *w, int node,
                         const void *at); /* a large one that holds this byte, or NULL */
void memory_unref(struct world *w, struct memory *m);

/* plan.c: the program of the run, the same for all ranks, into the model */
void program_plan(struct world *w);

/* program.c: what ranks do */
void program_run(struct runner *r);
/* The call that its program is in for the longest time, and since when; NULL: none. */
const char *program_call(const struct runner *r, uint64_t *since);
void program_dump(const struct runner *r); /* where its threads are */

/* disaster.c */
void disasters_plan(struct world *w);
void disasters_committed(struct world *w, int node); /* a view: its detector may doubt others for a while */
void disasters_heal(struct world *w);
void disasters_point(const char *name); /* the hook of runtime/base/fault.h */
#endif
