/* Which segments exist, and who knows of them. A rank's agent makes its own copies, tells all other agents, and answers
 * the rank when all have theirs, or one cannot: when the ranks have agreed on it every copy is there. */
#ifndef KEEL_AGENT_SEGMENTS_H
#define KEEL_AGENT_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/agent/store.h"
#include "runtime/view/view.h"
#include "runtime/wire/control.h"
#include "runtime/wire/wire.h"

struct agent;
struct proc;
struct refused; /* segments.c */

/* A rank wants to hear when all nodes know a segment. */
struct seg_wait {
    struct seg_wait *next;
    int proc;
    uint32_t id;  /* of the request, 0: it was answered */
    bool at_once; /* it is, as far as this segment goes */
    uint32_t seg;
    uint64_t number; /* of the allocation */
};

/* Who knows of them, and who waits for that; what they are stands in the store. */
struct segment_book {
    struct seg_wait *waits;
    struct refused *refused;
    struct {
        uint32_t segment; /* the last one, and the number of the call by which it was freed */
        uint64_t instance;
        uint64_t *told; /* [members] position of the last word of one that was freed */
        uint32_t by_us; /* of which one that was */
    } freed;
    int freeing;     /* processes that wait for it */
    bool declined;   /* there was no memory for a copy that was to be filled: VIEW_DECLINED was submitted */
    uint8_t *silent; /* [members] of this view (agent/said.h) */
};

/* False: out of memory. segments_fini frees what was made, also of an all-zero one. */
bool segments_init(struct segment_book *segments, int members);
void segments_fini(struct segment_book *segments);
/* Does a rank of this node wait until others know something? */
static inline bool segments_wait(const struct segment_book *segments)
{
    return segments->waits || segments->freeing;
}

/* Requests of a rank (wire/control.h): create, map, free. */
void segments_create(struct agent *a, struct proc *proc, const struct control *r);
void segments_map(struct agent *a, struct proc *proc, const struct control *r);
void segments_free(struct agent *a, struct proc *proc, const struct control *r);
/* Another agent tells of one, or what became at it of one that this node told it of. */
void segments_told(struct agent *a, int from, const struct wire *w);
void segments_has(struct agent *a, int from, const struct wire *w);
/* Without a question. */
void segments_tell(struct agent *a, int node, const struct store_segment *s);
/* Answers to those who wait for others to know. Called when something was acknowledged, or a view committed. */
void segments_acked(struct agent *a);
/* Does a rank of this node wait for that node to know something? */
bool segments_wait_for(const struct agent *a, int node);
/* The process waits for nothing any more. */
void segments_proc_gone(struct agent *a, const struct proc *proc);
/* There is no memory for a copy that is to be filled here: it is filled elsewhere, if anywhere, and this node keeps
 * what it has. */
void segments_decline(struct agent *a);
/* This node's copies of a segment for the copysets it holds in the current view. */
keel_status segments_make_copies(struct agent *a, struct store_segment *s);
/* Who is born is told what segments there are, before anything else. */
void segments_meet(struct agent *a, const struct view_event *events, int n);
/* After a view change: drop, mark and register copies as the copysets say now. before: the copysets of the old view. */
void segments_view_committed(struct agent *a, const struct view_copyset *before);
/* Segments whose allocation was complete after so many allocations and frees. */
uint32_t segments_complete(const struct agent *a, uint64_t instances);
/* Has this agent heard of so many allocations and frees? One that was born hears of those that were before. */
bool segments_heard(const struct agent *a, uint64_t instances);
/* Is there a segment of this redundancy? */
bool segments_use(const struct store *store, unsigned redundancy);
/* One with bytes, that the program has asked for? */
bool segments_hold(const struct store *store, unsigned redundancy);
#endif
