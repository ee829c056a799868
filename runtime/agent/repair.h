/* Making the copies of a copyset equal again (guarantees G2, G7), driven by the copyset's primary while the application
 * runs.
 * A copyset is repaired from the moment when the view that asks for it is settled (then every rank writes through the
 * primary, and what it wrote directly before is in all copies or not complete) in these steps:
 *
 *   GATHER   every other whole copy tells the primary which patches a dead writer may have left unequal there. What the
 *            scrubber suspects it finds out then (scrub.h)
 *   FETCH    where the primary's own copy may be torn, the bytes of a copy that is whole there come first. Until then
 *            the
 *            copyset executes nothing and answers no get. Where a process that lives is storing into it, copies that
 *            are filled have
 *            these bytes from another one, in this step
 *   SPREAD   the primary's bytes of every such patch go to the other copies; new copies are filled: what is remembered
 *            of
 *            operations, then all bytes, in one stream with the operations that are executed meanwhile
 *   DONE     all of it is acknowledged: VIEW_RESTORED was submitted. If the view that follows makes another copy the
 *            primary, this one executes nothing from here on
 *
 * A further death gives the copyset a new generation and begins again with GATHER; copies go on being filled where they
 * were. Every message carries the generation (or the epoch at which the copy was placed) and counts only under it. */
#ifndef KEEL_AGENT_REPAIR_H
#define KEEL_AGENT_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/base/life.h"
#include "runtime/view/view.h"
#include "runtime/wire/note.h"
#include "runtime/wire/wire.h"

struct agent;
struct repair; /* of a copyset: repair_int.h */

/* A patch that a dead writer may have left unequal. Kept until the copyset was restored in a later view. */
struct doubt {
    struct doubt *next;
    struct life writer;
    uint64_t epoch; /* at which the writer's end was committed, 0: not yet */
    struct patch patch;
};

struct repairs {
    struct doubt *doubts;
    struct repair *of; /* [copysets] */
    uint64_t blocks;   /* of fillings that were sent and received here */
    bool block_came;   /* since the last step */
    bool block_rests;  /* this step sends none */
};
#include "runtime/wire/intent.h"

keel_status repair_init(struct agent *a);
void repair_fini(struct agent *a);
/* A view was committed; before: the copysets of the one before it. */
void repair_view_committed(struct agent *a, const struct view_copyset *before);
/* Start what the settled view allows. */
void repair_view_settled(struct agent *a);
/* Go on; true if something was done. */
bool repair_step(struct agent *a);
/* Messages of the other side: WIRE_SNAP_*, WIRE_DOUBT, WIRE_FETCH, WIRE_PATCH. */
void repair_receive(struct agent *a, int from, const struct wire *w, const void *body);
/* The copy here, which was being filled, has said that it has all: from then on it may count as whole at any moment. */
bool repair_is_filled(const struct agent *a, int copyset);
/* The copyset must not execute anything now. */
bool repair_holds(const struct agent *a, int copyset);
/* Does a copyset execute nothing, as its copy here may be torn, until that node's copy has said or sent something? */
bool repair_waits_for(const struct agent *a, int node);
/* Are copies here and there made equal, or one from the other? */
bool repair_goes_on_with(const struct agent *a, int node);
/* Remember a patch of a writer that is dead, or gave up. */
void repair_add_doubt(struct agent *a, struct life writer, const struct patch *patch);
/* The writer says (WIRE_INTENT, no bytes) that all copies have its put: no doubt about it that was not committed yet
 * stays. */
void repair_forget_doubt(struct repairs *repairs, struct life writer, const struct msg_intent *m);
#endif
