/* Strong gets: what they return is never taken back, whatever dies (docs/protocols/replication.md, R12).
 *
 * A direct put reaches the copies one by one, so the primary may hold bytes that no other copy has, and that its death
 * takes back. For a strong get the primary therefore sends its bytes down the chain, in the stream of what it executes,
 * and every whole copy says which aligned words differ from its own. Words that are the same everywhere are answered as
 * they are; the others are read and compared again, until they are, the copyset changes (the origin asks again), or the
 * origin gives up.
 *
 * What the primary executes is in the stream before the question that follows it, so accumulates and atomics never make
 * a strong get wait for long, however many there are; only a direct put that is under way does. */
#ifndef KEEL_AGENT_STRONG_H
#define KEEL_AGENT_STRONG_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/wire.h"

struct agent;
struct conn;
struct check; /* strong.c */

/* Strong gets that are not answered yet. */
struct strong {
    struct check *checks;
    uint64_t rounds; /* of questions about them, so far */
};

/* A strong get, at the primary. */
void strong_request(struct agent *a, struct conn *c, const struct wire *w, int copyset);
/* WIRE_COMPARE, at another copy; WIRE_COMPARED, at the primary. */
void strong_asked(struct agent *a, int from, const struct wire *w, const void *body);
void strong_told(struct agent *a, int from, const struct wire *w, const void *body);
/* Those that are due again; when that is. */
void strong_step(struct agent *a);
uint64_t strong_deadline(const struct agent *a);
/* Does one wait for an answer of that node's copy? */
bool strong_waits_for(const struct agent *a, int node);
/* A view was committed: those whose copyset changed are sent back. */
void strong_view_committed(struct agent *a);
/* The segment is freed here: another copy may have been freed before, and never answers. */
void strong_segment_freed(struct agent *a, uint32_t seg);
void strong_forget(struct strong *strong, const struct conn *c);
void strong_fini(struct strong *strong);
#endif
