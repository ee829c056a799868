/* Which segments exist, and who knows of them. A rank's agent makes its own copies, tells all other agents, and answers the
 * rank when all have theirs: when the ranks have agreed on it every copy is there. */
#ifndef KEEL_AGENT_SEGMENTS_H
#define KEEL_AGENT_SEGMENTS_H

#include "runtime/agent/agent.h"

/* Requests of a rank (wire/control.h): create, map, free. */
void segments_create(struct agent *a, struct proc *proc, const struct control *r);
void segments_map(struct agent *a, struct proc *proc, const struct control *r);
void segments_free(struct agent *a, struct proc *proc, const struct control *r);
/* Another agent tells of one. */
void segments_told(struct agent *a, const struct wire *w);
void segments_tell(struct agent *a, int node, const struct store_segment *s);
/* Answers to those who wait for others to know. Called when something was acknowledged, or a view committed. */
void segments_acked(struct agent *a);
/* The process waits for nothing any more. */
void segments_proc_gone(struct agent *a, const struct proc *proc);
/* There is no memory for a copy that is to be filled here: it is filled elsewhere, if anywhere, and this node keeps what it has. */
void segments_decline(struct agent *a);
/* This node's copies of a segment for the copysets it holds in the current view. */
keel_status segments_make_copies(struct agent *a, struct store_segment *s);
/* After a view change: drop, mark and register copies as the copysets say now. before: the copysets of the old view. */
/* Who is born is told what segments there are, before anything else. */
void segments_meet(struct agent *a, const struct view_event *events, int n);
void segments_view_committed(struct agent *a, const struct view_copyset *before);
/* Segments whose allocation was complete after so many allocations and frees. */
uint32_t segments_complete(const struct agent *a, uint64_t instances);
void segments_fini(struct agent *a);
/* Is there a segment of this redundancy? */
bool segments_use(const struct agent *a, unsigned redundancy);
/* One with bytes, that the program has asked for? */
bool segments_hold(const struct agent *a, unsigned redundancy);
#endif
