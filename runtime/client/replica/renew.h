/* How a set that has begun anew gets what the whole sets have (docs/adr/0198). Pure: host.c and guest.c carry
 * out what it says.
 *
 * A *guest* is a process of a coming set (view/renew.c), its *hosts* are the replicas of the same rank in whole sets.
 *
 *   guest    waits in keel_keep_restore, and has told its hosts so, with its attempt
 *   host     in keel_keep_commit, when the version is made: the one that decides answers says which sets
 *            wait, the others of the rank take its answer, and meet (answer.c, exchange.c); then all ranks of the set
 *            say theirs. If one waits for all of them the hosts stand still, from here to the end
 *            the lowest host that is there tells its guest where the version lies; when it dies the next one does
 *   guest    reads all parts of its rank, and what it has kept, from that host's set into its own; again, from another
 *            one, if that set ends meanwhile
 *   guests   when all of a set have read the same version one of them asks for the view in which the set is whole
 *   all      go on when their view says what became of that attempt: with the guest, or without it
 *
 * Nobody writes into a guest but itself, so nothing that was sent to it comes late.
 *
 *  threads   one at a time.   blocks   never. */
#ifndef KEEL_CLIENT_REPLICA_RENEW_H
#define KEEL_CLIENT_REPLICA_RENEW_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/replica.h"

/* What the process's view says of a set. */
struct renew_set {
    bool whole, coming; /* neither: it is retired */
    uint32_t attempt;
    bool at_home; /* its memory is where its ranks are */
};

/* The attempts that wait, by set; 0: none. */
struct renew_waits {
    uint32_t attempt[REPLICAS_MAX];
};

/* ---- hosts ---- */

/* For the host that decides: the sets that come, are at home, and whose guest of this rank has said that it waits,
 * waits[set] being the attempt that it said it of. It is an answer: the others of the rank take it. */
struct renew_waits renew_answer(const struct renew_set *sets, int n, const uint32_t *waits);
/* What a rank says to all of its set: of each set its attempt, and the complement of that. Each gets the greatest of
 * each word. */
void renew_words(const struct renew_waits *answer, uint64_t words[2 * REPLICAS_MAX]);
/* The lowest set that waits for all ranks, -1: none; *attempt: which one. A set that one rank waits for in vain keeps
 * no other one from coming. */
int renew_agreed(const uint64_t greatest[2 * REPLICAS_MAX], uint32_t *attempt);
enum renew_fate {
    RENEW_WAITS, /* stand still */
    RENEW_JOINS, /* the set is whole: replicas compare with the guest from here on */
    RENEW_GONE   /* the attempt is over, whether or not the set was whole meanwhile */
};

/* What became of that attempt, for its hosts and for its guests. */
enum renew_fate renew_fate(const struct renew_set *set, uint32_t attempt);

/* One that stands still for the guest of a set, from renew_agreed on. */
struct renew_host {
    int guest; /* its set */
    uint32_t attempt;
    bool told; /* its guest, where the version lies */
};

void renew_host_init(struct renew_host *h, int guest, uint32_t attempt);
/* By the view as it is now, for the host of `own`. *tells: it is to tell its guest, now and once. What the fate is the
 * host that decides tells the others, as an answer. */
enum renew_fate renew_host_looks(struct renew_host *h, const struct renew_set *sets, int n, int own, bool *tells);

/* How long the guest of a rank keeps the hosts of that rank waiting. */
struct renew_late {
    uint32_t attempt; /* seen first */
    uint64_t since_ns;
};

/* The set comes, and its guest of this rank has said that it waits in attempt `waits`: has it been more than limit_ns
 * that it did not come to this attempt? */
bool renew_is_late(struct renew_late *l, const struct renew_set *set, uint32_t waits, uint64_t now_ns,
                   uint64_t limit_ns);

/* ---- guests ---- */

struct renew_guest {
    uint32_t attempt;
    uint64_t said[REPLICAS_MAX];    /* 1 + the life of the host that it has said to that it waits; 0: to none */
    int from;                       /* whom it reads from, -1: nobody */
    unsigned told;                  /* who else has told where it lies: bit set */
    uint64_t version[REPLICAS_MAX]; /* what each has told */
    uint64_t has;                   /* the version that it has read whole, 0: none, */
    int host;                       /* and from whom: it goes on where that one is */
};

void renew_guest_init(struct renew_guest *g, uint32_t attempt);
/* Is it to say that it waits to the host of a set that is like that, whose life is the set's attempt? Once to each
 * life: renew_guest_said when that has taken it, or has died. */
bool renew_guest_says(const struct renew_guest *g, int set, const struct renew_set *is);
void renew_guest_said(struct renew_guest *g, int set, uint32_t life);
/* From which life it hears in that set; false: from none, as it has said nothing there. */
bool renew_guest_hears(const struct renew_guest *g, int set, uint32_t *life);
/* The host in that set has told. True: it is to be read from now. */
bool renew_guest_told(struct renew_guest *g, int set, uint32_t attempt, uint64_t version);
/* All that was to be read is read, or some of it could not be. Returns the set that is to be read from now, -1: none;
 * if it has all it says its version to the others. */
int renew_guest_read(struct renew_guest *g, bool all);
/* May the set be whole? Of the versions that all its guests have said, and of their complements, the greatest. */
bool renew_may_join(uint64_t greatest, uint64_t greatest_complement);

#endif
