/* A few agents in one process, over connections in memory, and the ranks that talk to them, all driven by the test:
 * nobody does anything but in world_turn and world_pump, and views change when the test says so. */
#ifndef KEEL_TEST_AGENTS_H
#define KEEL_TEST_AGENTS_H

#include "runtime/agent/agent.h"
#include "runtime/wire/get.h"
#include "runtime/wire/put.h"
#include "runtime/wire/rmw.h"
#include "runtime/wire/segment_told.h"

enum { NODES_MAX = 5, SEG_SHADOW = 1, SEG_TRIPLE = 2, SEG_NONE = 3, SUBMITTED_MAX = 256, SEG_BYTES = 1024 * 1024 };

struct node {
    struct agent agent;
    struct tp *net, *shm;
    struct tp_addr addr;
    bool still; /* does not run: frozen, or dead */
    bool fatal;
    bool full;         /* has no memory for copies */
    int refused_block; /* there is none behind the n-th block of those that are filled from now on; 0: there is */
    uint64_t prepared; /* proposal that was answered */
    int broken, refused;
    int checked[NODES_MAX]; /* said to be waited for */
    unsigned process;       /* what is said of its processes */
    uint64_t ticks;
    int failures;          /* told of */
    struct proc *released; /* the last one that is to end as moved */
    int stays;             /* those that were to, and are not any more */
    int assigns;           /* ranks that were to begin here, and the last one of them */
    struct life assigned;
    char said[4096]; /* names of the events, each with a space behind it */
    char last[256];  /* members of the last one, */
    char found[256]; /* and of the last that the scrubber found */
};

struct rank {
    struct tp *net;
    struct tp_ep *ep[NODES_MAX];
    uint32_t rank, incarnation;
    int node;
    uint64_t attempt, seq;
    struct wire reply; /* the last one */
    uint8_t body[WIRE_BULK_MAX];
    int replies;
    int done; /* writes that ended, and how the last one did */
    keel_status status;
};

enum { PAST_MAX = 512, PAST_EVENTS_MAX = 4 };
struct world {
    int nodes, spares, ranks;
    int room, joined;                   /* room: for nodes that join; set it before world_open */
    const struct replica_map *replicas; /* NULL: none; set it before world_open, */
    enum replica_death on_death;        /* and this */
    enum view_policy policy;
    struct {
        int n;
        struct view_event events[PAST_EVENTS_MAX];
    } past[PAST_MAX];
    uint64_t now, epoch;
    struct node node[NODES_MAX];
    struct rank rank[NODES_MAX];
    struct view_event submitted[SUBMITTED_MAX];
    int submissions;
    struct control answer;
    uint64_t verified; /* the last audit that ended, and what it said */
    char verdict[640];
};

extern struct world w;

/* One rank on each node, three segments (none, shadow, triple); everybody is connected with everybody. */
void world_open(int nodes, int spares, enum view_policy policy);
void world_close(void);
/* Agents and ranks that are not still do what there is to do, once or until it is all done. */
void world_turn(void);
void world_pump(void);
/* One agent alone. */
void world_turn_of(int node);

/* A view change in its steps, at all nodes that are not still; world_change is all of them, pumped. */
void world_prepare(const struct view_event *events, int n);
void world_commit(int node, const struct view_event *events, int n);
void world_settle(int node);
void world_change(const struct view_event *events, int n);
/* One more node, given all views so far, is born in the next one, which all have committed and nobody has settled;
 * its number. */
int world_join(void);
/* In the view in which that one dies. */
int world_join_for(int dead);
/* The node is still from now on, and a view says that it is dead. */
void world_kill_node(int node);
void world_kill_rank(int rank);
/* A process of the agent's node that has become a rank, with its page of intents, empty. */
struct proc *world_process(struct agent *a, struct life life, struct intent_page *page);
/* Commit what was submitted since, again and again, until nothing is. */
void world_restore(void);

struct wire rank_wire(const struct rank *r, uint8_t type, uint32_t seg, int slot, uint64_t offset);
void rank_connect(struct rank *r, int node);
/* Send, without waiting; ask: pump and give the status, with the reply in r->reply, or -1000 if there is none. */
void rank_send(struct rank *r, int node, struct wire wire, const void *body);
int rank_ask(struct rank *r, int node, struct wire wire, const void *body);
/* A direct put of a word to one copy, covered by a note. */
int rank_put(struct rank *r, int node, uint32_t seg, int slot, uint64_t offset, int64_t value, uint16_t note);

struct view_copyset *copyset_at(int node, uint32_t seg, int slot);
uint8_t *bytes_at(int node, uint32_t seg, int slot);
int64_t word_at(int node, uint32_t seg, int slot, uint64_t offset);
/* All copies of all copysets are the same, byte by byte. */
bool copies_are_equal(void);
bool is_direct(uint32_t seg, int slot);
#endif
