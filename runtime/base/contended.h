/* Is the processor that a thread looks on wanted by others? Pure.
 *
 * Who waits by looking takes the processor from whoever would run there, and where many share few that is often the
 * one that he waits for. The kernel shows it: a look in vain takes a microsecond or two, and one that somebody else's
 * turn lies within takes as long as that turn. When that is so again and again there is no looking for a
 * while, and for twice as long if it goes on. Who sleeps instead gets the processor as
 * soon as something comes, before those who use all of it. */
#ifndef KEEL_BASE_CONTENDED_H
#define KEEL_BASE_CONTENDED_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CONTENDED_LATE_NS = 75000,     /* a look that took longer had somebody else's turn in it, */
    CONTENDED_LONG_NS = 500000,    /* and one of so long somebody's who computes: who waits, too, sleeps before; */
    CONTENDED_LATES = 4,           /* so many within */
    CONTENDED_WINDOW_NS = 5000000, /* so much looking are more than interrupts, and a machine that stands still once */
    CONTENDED_MIN_NS = 20000000,   /* so long nobody looks, */
    CONTENDED_MAX_NS = 320000000,  /* and at most */
    CONTENDED_STILL = 4,           /* it is still so, if it comes within so many times the last pause */
};

/* Of a thread, or of threads that look in turns under one lock. All zero: nothing is known. */
struct contended {
    uint64_t looked_at; /* the last look in vain that another one may have followed at once; 0: none */
    uint64_t looks_ns;  /* of late, without others' turns; */
    unsigned lates;     /* and so many of them were late */
    uint64_t until, pause_ns;
};

static inline void contended_begin(struct contended *c, uint64_t now)
{
    bool still = c->pause_ns && now < c->until + CONTENDED_STILL * c->pause_ns;
    uint64_t twice = 2 * c->pause_ns;
    c->pause_ns = !still ? CONTENDED_MIN_NS : twice < CONTENDED_MAX_NS ? twice : CONTENDED_MAX_NS;
    c->until = now + c->pause_ns;
    c->looks_ns = 0;
    c->lates = CONTENDED_LATES / 2; /* afterwards fewer are enough */
}

/* True: others want the processor, so sleep instead of looking. */
static inline bool contended_is(const struct contended *c, uint64_t now)
{
    return now < c->until;
}

/* A look that ended `now` took so long: late, if others' turns of that length are to count. */
static inline void contended_took(struct contended *c, uint64_t took, bool late, uint64_t now)
{
    c->lates += late;
    c->looks_ns += late ? 0 : took;
    if (late && now >= c->until && c->lates >= CONTENDED_LATES)
        contended_begin(c, now);
    if (c->looks_ns > CONTENDED_WINDOW_NS) {
        c->looks_ns /= 2;
        c->lates /= 2;
    }
}

/* Nothing came in a look that ends `now`. True: as contended_is. */
static inline bool contended_in_vain(struct contended *c, uint64_t now)
{
    uint64_t took = c->looked_at ? now - c->looked_at : 0;
    c->looked_at = now;
    contended_took(c, took, took >= CONTENDED_LATE_NS, now);
    return contended_is(c, now);
}

/* Something came, or the thread has slept: how long that took says nothing. */
static inline void contended_pause(struct contended *c)
{
    c->looked_at = 0;
}
#endif
