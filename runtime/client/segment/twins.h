/* What a process has stored plainly into a copy of a replicated segment, and how it reaches the other copies: granule
 * by granule (layout.h's pieces). Who owns it sees to it that the first store to a granule is noticed (track.c: by
 * write protection).
 *
 * A granule's state: CLEAN -> TAKING, one thread copies it -> DIRTY, with a twin, and may be stored to -> FLUSHING ->
 * CLEAN, or DIRTY if its words could not be put. Who stores into one that another thread takes or flushes waits until
 * that is done.
 *
 * A twin says what the other copies hold for as long as nobody else brings anything there. Where somebody has since
 * then written to the granule through Keel (wire/marks.h), or copies were made equal or filled, which changes the
 * route's tag, a word may be what it was and another one elsewhere; and so it may where another process of the node had
 * stored when the twin was taken, above all one that died before it brought that to the others. All words of such a
 * granule are put. */
#ifndef KEEL_CLIENT_SEGMENT_TWINS_H
#define KEEL_CLIENT_SEGMENT_TWINS_H

#include "runtime/client/client.h"

struct twins {
    struct client *client;
    keel_segment *segment;
    int copyset;
    uint32_t index; /* of the rank in its slot */
    size_t bytes, granule, granules;
    uint8_t *own;  /* the copy, where it may always be read and written */
    uint8_t *twin; /* memory where granules are not clean */
    _Atomic uint8_t *state;
    struct since *since; /* where granules are not clean; whoever sets the state reads and writes it */
    struct flush *flush; /* what a flush needs: it must not fail for want of memory */
    void *user;          /* of the next two, which may be NULL */
    bool (*protect)(void *user, size_t at, size_t bytes, bool protect); /* false: the system refused */
    void (*unused)(void *user, size_t at, size_t bytes);                /* nobody needs what the twin has there */
};

/* The copy of the client's own part, at own. twin: as many bytes, zero or not, the caller's for as long as this is
 * used. protect and unused are the caller's to set. KEEL_ERR_NOMEM: it is to be freed nevertheless. */
keel_status twins_init(struct twins *t, struct client *c, keel_segment *s, uint8_t *own, uint8_t *twin);
void twins_fini(struct twins *t);
/* Somebody is about to store into the granule that has the byte: takes its twin, and lets it be stored to. Also in a
 * handler of signals: memcpy, atomics and protect. False: protect has failed. */
bool twins_take(struct twins *t, size_t at);
/* Has nothing been stored that the other copies may lack? */
bool twins_clean(const struct twins *t);
/* All copies have what was stored into the client's own part and those of the dead, and with `neighbours` into those of
 * living ranks of its slot, too; or an error: then it stays noted. One at a time. Nobody writes to these parts through
 * Keel meanwhile, nor do others store there; stores of other threads wait. */
keel_status twins_flush(struct twins *t, bool neighbours);
#endif
