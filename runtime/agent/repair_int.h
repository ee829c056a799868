/* Between the rooms of a repair:
 *   repair.c         from view to view: the phases of each copyset, and who gets which message
 *   repair_doubt.c   what a copy doubt_knows of patches that may be unequal
 *   repair_claim.c   what the primary doubt_knows of them, of all copies: where one may be torn, and where whole bytes
 *                    are
 *   repair_patch.c   their bytes, on their way between copies: FETCH and SPREAD
 *   repair_fill.c    the primary fills a copy
 *   repair_filled.c  a copy is filled */
#ifndef KEEL_AGENT_REPAIR_INT_H
#define KEEL_AGENT_REPAIR_INT_H

#include "runtime/agent/agent.h"
#include "runtime/agent/pace.h"
#include "runtime/agent/repair.h"
#include "runtime/wire/patch.h"

enum phase { PHASE_IDLE, PHASE_GATHER, PHASE_FETCH, PHASE_SPREAD, PHASE_DONE };

/* A doubt as the primary knows it: of its own copy, or told by another. */
struct claim {
    struct claim *next;
    int copy; /* place in the copyset's list */
    struct life writer;
    struct patch patch;
    bool living; /* the writer lives, and will repeat its stores: it only says that this copy may be torn there */
    bool around; /* copies that are filled have these bytes from another copy */
};

/* A copy that is being filled. Goes on when the generation changes. */
struct fill {
    int node;
    uint64_t placed;
    bool begun, sent, here; /* here: the copy said that it has all */
    struct pace pace;
    uint32_t seg; /* where it is */
    uint64_t offset;
    uint64_t bytes, started_at;
};

struct repair {
    uint64_t generation; /* that this is for */
    bool told;           /* as a copy that is not the primary */
    uint64_t filled;     /* 1 + the epoch at which the copy was placed here that has said that it has all, 0: none */
    /* as the primary */
    enum phase phase;
    bool torn;     /* this copy may be: the copyset executes nothing */
    bool gathered; /* all that GATHER waits for is here, but for what the scrubber finds out */
    bool handover; /* DONE, and another copy will be the primary */
    bool told_by[COPIES_MAX];
    struct claim *claims, **claims_tail;
    struct claim *at;   /* FETCH, SPREAD: the next one to be dealt with */
    uint64_t at_offset; /* in it */
    int fetches;        /* answers awaited */
    struct fill fill[COPIES_MAX];
};

/* Of what a message names; -1: there is no such copyset. */
static inline int repair_copyset_of(const struct agent *a, uint16_t slot, uint32_t class)
{
    return slot < a->view.nodes && class < CLASSES ? copyset_of(slot, class) : -1;
}

static inline bool repair_is_primary(const struct agent *a, const struct view_copyset *g)
{
    return g->copies > 0 && g->copy[0].node == a->self;
}

static inline bool repair_is_one_filled(const struct view_copyset *g)
{
    return view_whole_copies(g) < g->copies;
}

static inline bool repair_is_in_range(const struct store_copy *copy, uint64_t offset, uint64_t len)
{
    return copy && copy->base && len <= copy->bytes && offset <= copy->bytes - len;
}

/* repair_doubt.c. Doubts that no view to come needs are dropped; notes of older generations, of a copyset that is
 * equal, call nothing torn. */
void doubt_forget_settled(struct agent *a);
void doubt_forget_torn(struct agent *a, int copyset);
/* The copy here may be torn. */
bool doubt_has_torn(const struct agent *a, int copyset);
/* What is known here of the copyset's patches goes to `know`. living: the writer lives, and is storing there. */
typedef void doubt_knows(struct agent *a, int copyset, struct life writer, const struct patch *patch, bool living);
void doubt_for_each(struct agent *a, int copyset, doubt_knows *know);
/* And, where the slot has left this node, what its processes have stored plainly into the copy here and may not have
 * brought to the others: their next lives store elsewhere, and nobody would bring it. */
void doubt_for_each_stored(struct agent *a, int copyset, doubt_knows *know);
/* All of them to the primary. */
void doubt_tell_all(struct agent *a, int copyset);

/* repair_claim.c */
void claim_add(struct agent *a, struct repair *r, int copy, struct life writer, const struct patch *patch, bool living);
void claim_free_all(struct repair *r);
/* WIRE_DOUBT */
void claim_receive(struct agent *a, int from, const struct wire *w);
/* This copy may be torn there by a writer that does not come again: it gets the bytes of another, */
bool claim_must_fetch(const struct repair *r, const struct claim *c);
/* of this one, and these bytes; 0: there is none */
int claim_whole_copy(const struct repair *r, const struct view_copyset *g, const struct claim *c, struct patch *bytes);
/* The copy from which those that are filled get the bytes, instead of from this one; 0: this one. */
int claim_copy_around(const struct repair *r, const struct view_copyset *g, const struct claim *c, struct patch *bytes);
/* What the others get of it. */
struct patch claim_to_spread(const struct repair *r, const struct claim *c);
/* The next block to fill ends before what the copy has from another one; false: it would begin in it, and is behind
 * it now. */
bool claim_goes_around(const struct repair *r, struct fill *f, uint64_t *end);

/* repair_patch.c. Of the claim at r->at; false when a window is full. */
bool patch_fetch_some(struct agent *a, int copyset);
bool patch_spread_some(struct agent *a, int copyset);
/* WIRE_FETCH, WIRE_PATCH */
void patch_answer(struct agent *a, int from, const struct wire *w);
void patch_receive(struct agent *a, int from, const struct wire *w, const void *body);

/* repair_fill.c. A view came: copies that were being filled go on where they are. */
void fill_keep(struct repair *r, const struct view_copyset *g, bool was_primary);
void fill_begin(struct agent *a, int copyset, struct fill *f);
/* Send what may be sent now; true if it was something. */
bool fill_step(struct agent *a, int copyset, struct fill *f);
/* Bytes of another copy, an answer to WIRE_FETCH, for those that are filled. */
void fill_around(struct agent *a, int copyset, const struct msg_patch *m, const void *body);
/* WIRE_SNAP_HERE */
void fill_receive_here(struct agent *a, int from, const struct wire *w);
bool fill_all_here(const struct repair *r, const struct view_copyset *g);

/* repair_filled.c: WIRE_SNAP_*, but for that one */
void filled_receive(struct agent *a, int from, const struct wire *w, const void *body);
#endif
