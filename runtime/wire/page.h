/* The view page: what an agent tells its ranks about the view, in shared memory (a memfd that ranks map read-only).
 * Written by the agent's data thread only.
 *
 * A *route* says where the copies of a copyset (wire/layout.h) are. Its tag is another number for every change,
 * so a rank never needs a lock: it reads the route, acts on it, compares the tag when the operation has completed, and
 * acts again if it changed. A route that comes back has another tag. From a prepare to the commit that follows, a route
 * that names a node which is cut off has the tag 0: nothing completes under it any more
 * (docs/protocols/replication.md).
 * The layout is the same for every process of one build (checked through PAGE_MAGIC). */
#ifndef KEEL_WIRE_PAGE_H
#define KEEL_WIRE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/flip.h"
#include "runtime/base/replica.h"
#include "runtime/wire/layout.h"
#include "runtime/net/transport.h"

#define PAGE_MAGIC 0x6b65656c7067000full
#define PAGE_SET_OVER UINT32_MAX

/* What this agent's detector thinks of a node that is not declared dead. Bits. */
enum page_doubt {
    PAGE_DOUBT_SUSPECT = 1, /* no sign of life of late, and nothing decided */
    PAGE_DOUBT_LINK = 2,  /* it lives, and the path between it and this node does not work, in one direction at least */
    PAGE_DOUBT_AGENT = 4, /* the kernel of its host answers, its agent does not */
    PAGE_DOUBT_DEAD = 8,  /* believed dead: the view without it is to come */
};

struct page_node {
    _Atomic uint32_t alive;
    _Atomic uint32_t doubts;   /* enum page_doubt */
    _Atomic uint64_t answered; /* it answered what was asked at this time (CLOCK_MONOTONIC of this node) */
    _Atomic uint64_t died;     /* epoch, 0: it lives */
    uint64_t incarnation;
    _Atomic int32_t place; /* on the grid of nodes; -1: none */
    uint32_t pad;
    struct tp_addrs addrs; /* where its data listeners are */
};

enum route_mode {
    ROUTE_NONE,    /* being changed: wait */
    ROUTE_DIRECT,  /* all copies are equal: writers write each of them */
    ROUTE_THROUGH, /* copies are being made equal: everything through the primary */
    ROUTE_FILLING, /* the primary is the only whole copy: writes through it, reads from it */
};

struct page_route {
    _Atomic uint64_t tag;             /* bits 0-1 mode, 2-63 generation (epoch of the last change) */
    _Atomic uint64_t lost_at;         /* epoch at which the copyset's data were lost, 0: never */
    _Atomic int32_t node[COPIES_MAX]; /* the primary first, -1 behind the last */
};

/* Where a rank's part is that runs. */
enum page_part {
    PAGE_PART_HERE,  /* on its node */
    PAGE_PART_COMES, /* it has moved before others of its slot, which follows them; or it is to go on itself */
    PAGE_PART_STAYS, /* it has moved, and its slot is with another node for good */
};

struct page_rank {
    _Atomic uint64_t where;   /* bits 0-31 incarnation, 32-63 node (0xffffffff: nobody runs it) */
    _Atomic uint32_t doubted; /* of this incarnation: how many of its doubts (note.h) were taken up */
    uint32_t slot;
    uint32_t index;
    uint32_t replica;      /* of a job with replicas: its place, as in struct replica_map */
    _Atomic uint32_t done; /* it ended by itself */
    _Atomic uint32_t part; /* enum page_part */
    /* of its last process that died */
    _Atomic uint64_t died; /* epoch, 0: none */
    _Atomic uint32_t deaths;
    _Atomic int32_t died_on; /* node */
    _Atomic int32_t signal;  /* SIGNAL_HIDDEN: nobody knows; 0: its node died */
    /* what the kernel of its node said of its process when it was asked at this time, or later (that it is stopped
     * is told to all nodes) */
    _Atomic uint32_t process; /* enum page_process */
    _Atomic uint64_t ticks;   /* processor time it had used */
    _Atomic uint64_t looked;
    _Atomic uint64_t life;    /* 1 + incarnation while it takes part in collectives, 0 while nobody does for it */
    _Atomic uint64_t joined;  /* epoch at which that incarnation joined, 0 for the first */
    _Atomic uint64_t changed; /* epoch of the last change of life */
    _Atomic uint64_t after;   /* what of all live ranks was complete when it joined: wire/complete.h */
};

enum page_process {
    PAGE_PROCESS_RUNS,
    PAGE_PROCESS_STOPPED, /* by a signal or a debugger */
    PAGE_PROCESS_WAITS,   /* and no signal wakes it */
    PAGE_PROCESS_NONE,    /* not started yet, or ended and not declared so */
};

/* Links that are broken though both ends live. Read like a route: the counter is odd while they are being changed. */
enum { PAGE_LINKS_MAX = 64 };
struct page_links {
    _Atomic uint64_t version;
    _Atomic uint32_t n;
    uint32_t pad;
    struct page_link {
        _Atomic int32_t a, b;
        _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC of this node */
    } link[PAGE_LINKS_MAX];
};

/* One change of a rank's life. The last PAGE_CHANGES are kept, so that a rank goes through the views one by one, as the
 * collectives of a group need it, also if it was not looking for a while. */
struct page_change {
    uint64_t epoch, life, after;
    uint32_t rank;
    uint32_t pad;
};

enum { PAGE_CHANGES = 4096, PAGE_GRID_DIMS = 6 };

/* The grid that the nodes stand on; written before any rank reads it. */
struct page_grid {
    uint32_t dims;                /* 0: nobody knows of one */
    int32_t size[PAGE_GRID_DIMS]; /* in nodes; the first dimension changes fastest in a place's number */
    int32_t
        slots[PAGE_GRID_DIMS]; /* of them the first ones are for nodes that compute: slot s has the s-th such place */
    uint32_t rings;            /* bit d: dimension d is a ring */
    uint32_t pad;
};

struct page {
    uint64_t magic;
    uint32_t nodes, members, ranks;
    uint32_t self;
    _Atomic uint64_t epoch;
    _Atomic uint32_t fenced; /* the agent has lost the job: every operation fails */
    _Atomic uint32_t frozen; /* a view is being prepared: no rank enters a collective of all live ranks */
    /* a process of this node has tracked a segment: from then on who writes to a copy marks it (marks.h) */
    _Atomic uint32_t tracked;
    _Atomic uint32_t cut_off; /* odd while this node hears too few of the others; one more with each change */
    uint32_t patience_ms;     /* a node that does not answer is declared dead within this time, if at all */
    _Atomic uint32_t next_id; /* the nodes' ids from here on are unborn: there is room for them only */
    _Atomic uint64_t showing; /* odd while ranks' lives are written */
    _Atomic uint64_t changes; /* so many so far; number k is change[k % PAGE_CHANGES] */
    uint32_t replicas, check, on_mismatch; /* base/replica.h; 0: the program runs once */
    /* of each set: 0: it is whole; the incarnation of its processes, where it has begun anew and is not whole yet; else
     * PAGE_SET_OVER: it has lost a process, and its others end. One word, as it may be whole in the next view */
    _Atomic uint32_t set[REPLICAS_MAX];
    _Atomic uint32_t sets_at_home; /* bit s: all parts of set s lie where its ranks began */
    _Atomic uint32_t begins_again; /* processes take the places of dead ones */
    uint32_t set_copies, on_death; /* base/replica.h */
    _Atomic uint32_t bound;        /* where partners act: by this view a set that loses a process is retired (sets.c) */
    struct flip_rules inject;      /* wrong bits on purpose */
    struct page_grid grid;
    struct page_change change[PAGE_CHANGES];
    /* followed by page_node[members], page_route[nodes * CLASSES], page_rank[ranks], page_links */
};

/* A route as read at one moment. */
struct route {
    uint64_t tag;
    int copies;
    int node[COPIES_MAX];
    bool lost;
};

/* Has the set of a process of that incarnation lost a member? */
static inline bool page_set_is_over(const struct page *p, int set, uint32_t incarnation)
{
    uint32_t is = atomic_load_explicit(&p->set[set], memory_order_acquire);
    return is != 0 && (is == PAGE_SET_OVER || is != incarnation);
}

static inline size_t page_bytes(uint32_t nodes, uint32_t members, uint32_t ranks)
{
    return sizeof(struct page) + members * sizeof(struct page_node) + nodes * CLASSES * sizeof(struct page_route) +
           ranks * sizeof(struct page_rank) + sizeof(struct page_links);
}
static inline struct page_node *page_node(const struct page *p, int node)
{
    return (struct page_node *)(p + 1) + node;
}
static inline struct page_route *page_route(const struct page *p, int copyset)
{
    return (struct page_route *)((struct page_node *)(p + 1) + p->members) + copyset;
}
static inline struct page_rank *page_rank(const struct page *p, int rank)
{
    return (struct page_rank *)((struct page_route *)((struct page_node *)(p + 1) + p->members) + p->nodes * CLASSES) +
           rank;
}
static inline struct page_links *page_links(const struct page *p)
{
    return (struct page_links *)page_rank(p, (int)p->ranks);
}

static inline enum route_mode route_mode(uint64_t tag)
{
    return (enum route_mode)(tag & 3);
}
static inline uint64_t route_generation(uint64_t tag)
{
    return tag >> 2;
}
static inline uint64_t route_tag(enum route_mode mode, uint64_t generation)
{
    return generation << 2 | (uint64_t)mode;
}

static inline uint64_t page_tag(const struct page *p, int copyset)
{
    return atomic_load_explicit(&page_route(p, copyset)->tag, memory_order_acquire);
}

/* False: it is being changed. */
static inline bool page_route_read(const struct page *p, int copyset, struct route *out)
{
    const struct page_route *r = page_route(p, copyset);
    out->tag = atomic_load_explicit(&r->tag, memory_order_acquire);
    if (!out->tag)
        return false;
    out->copies = 0;
    for (int i = 0; i < COPIES_MAX; i++) {
        out->node[i] = atomic_load_explicit(&r->node[i], memory_order_relaxed);
        out->copies += out->node[i] >= 0;
    }
    out->lost = atomic_load_explicit(&r->lost_at, memory_order_relaxed) != 0;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&r->tag, memory_order_relaxed) == out->tag;
}

/* Is there a doubt about the node, or the way to it? */
static inline bool page_is_doubted(const struct page *p, int node)
{
    return atomic_load_explicit(&page_node(p, node)->doubts, memory_order_relaxed) != 0;
}

/* Which copy of the route a get reads: the primary, or, while that node is in doubt and all copies are equal, one that
 * is not, best the one on this node. */
static inline int page_copy_to_read(const struct page *p, const struct route *r)
{
    if (r->copies < 2 || r->lost || route_mode(r->tag) != ROUTE_DIRECT || !page_is_doubted(p, r->node[0]))
        return 0;
    int chosen = 0;
    for (int i = 1; i < r->copies; i++)
        if (r->node[i] == (int)p->self)
            return i;
        else if (!chosen && !page_is_doubted(p, r->node[i]))
            chosen = i;
    return chosen;
}

/* The agent's: nodes[copies]. */
static inline void page_route_write(struct page *p, int copyset, uint64_t tag, uint64_t lost_at, const int *nodes,
                                    int copies)
{
    struct page_route *r = page_route(p, copyset);
    if (atomic_load_explicit(&r->tag, memory_order_relaxed) == tag)
        return;
    atomic_store_explicit(&r->tag, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&r->lost_at, lost_at, memory_order_relaxed);
    for (int i = 0; i < COPIES_MAX; i++)
        atomic_store_explicit(&r->node[i], i < copies ? nodes[i] : -1, memory_order_relaxed);
    atomic_store_explicit(&r->tag, tag, memory_order_release);
}
#endif
