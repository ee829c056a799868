/* Collectives where partners do the part of the dead: what each rank has to say goes to all others in rounds
 * (passing.h).
 *
 * Who leaves (keel_finalize) takes part in none from then on, as its replicas, and the others do theirs without it. It
 * has passed on all up to the last collective that it has come to. So it says LEFT to those to whom it would have
 * passed on the next one, in the words by which they wait for it. Who finds that reads the blocks that it would have
 * got of it where each of them lies, in the part of the rank whose it is. A word there says to which collective that
 * one has come, and that it has left: then it has no block, which is passed on as any other. */
#include <string.h>

#include "collectives/schedule.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/replica/nap.h"

enum { WORD = sizeof(uint64_t), ROOM_BYTES = 1 << 20, BLOCK_MIN = 136, BLOCK_MAX = 32776 };

#define LEFT (UINT64_C(1) << 62)
#define ABSENT UINT64_MAX /* in the place of what is left to say */

static struct {
    struct acting_room *room;
    uint64_t number; /* of the collective that it has come to */
} us;

size_t acting_pass_begin(struct acting_room *room)
{
    size_t block = ROOM_BYTES / 2 / (size_t)replica.size;
    block = block < BLOCK_MIN ? BLOCK_MIN : block > BLOCK_MAX ? BLOCK_MAX : block / 16 * 16 + WORD;
    room->passing = (struct passing){replica.rank, replica.size, block};
    us.room = room;
    return passing_bytes(&room->passing) + WORD;
}

static enum wait_call call_of(enum replica_call call)
{
    static const enum wait_call of[REPLICA_CALLS] = {
        [CALL_group_bcast] = WAIT_GROUP_FIRST + SCHEDULE_BCAST,
        [CALL_group_allgather] = WAIT_GROUP_FIRST + SCHEDULE_ALLGATHER,
        [CALL_group_allreduce] = WAIT_GROUP_FIRST + SCHEDULE_ALLREDUCE,
        [CALL_group_reduce] = WAIT_GROUP_FIRST + SCHEDULE_REDUCE,
        [CALL_group_scan] = WAIT_GROUP_FIRST + SCHEDULE_SCAN,
        [CALL_group_exscan] = WAIT_GROUP_FIRST + SCHEDULE_EXSCAN,
        [CALL_segment_free] = WAIT_ALLOC,
    };
    return of[call] ? of[call] : WAIT_GROUP_BARRIER;
}

/* ---- blocks ---- */

static size_t most(void)
{
    return us.room->passing.room - WORD;
}

/* Of what is left to say. */
static size_t bytes_of(uint64_t left)
{
    return left == ABSENT ? 0 : left < most() ? (size_t)left : most();
}

static uint8_t *block_of(int origin)
{
    return us.room->part + passing_place(&us.room->passing, us.number, origin);
}

static uint64_t left_of(int origin)
{
    uint64_t left;
    memcpy(&left, block_of(origin), WORD);
    return left;
}

/* Behind all blocks: to which collective the part's rank has come, and LEFT. Its own block is there then. */
static size_t come_at(void)
{
    return passing_bytes(&us.room->passing);
}

static void say_come(uint64_t come)
{
    __atomic_store_n((uint64_t *)(void *)(us.room->part + come_at()), come, __ATOMIC_RELEASE);
}

static bool has_left(uint64_t come)
{
    return come & LEFT && (come & ~LEFT) < us.number;
}

static keel_status read_block(int origin)
{
    size_t place = passing_place(&us.room->passing, us.number, origin);
    keel_status status = replica_reads(0, origin, place, block_of(origin), WORD);
    size_t len = status == KEEL_OK ? bytes_of(left_of(origin)) : 0;
    return len ? replica_reads(0, origin, place + WORD, block_of(origin) + WORD, len) : status;
}

/* From where it lies, when it is there. */
static keel_status fetch_block(enum wait_call call, int origin)
{
    static const uint64_t absent = ABSENT;
    int native = replica_native_of(origin);
    struct wait wait = {.call = call, .whom = nap_for_process, .arg = &native};
    uint64_t come = 0;
    keel_status status = replica_reads(0, origin, come_at(), &come, WORD);
    while (status == KEEL_OK && !has_left(come) && (come & ~LEFT) < us.number) {
        nap(&wait);
        status = replica_reads(0, origin, come_at(), &come, WORD);
    }
    waits_over(replica.client, &wait);
    if (status == KEEL_OK && !has_left(come))
        return read_block(origin);
    memcpy(block_of(origin), &absent, WORD);
    return status;
}

/* ---- a collective ---- */

static keel_status pass_on(const struct passing_round *r)
{
    const struct passing *p = &us.room->passing;
    keel_status status = KEEL_OK;
    for (int i = 0; i < r->blocks && status == KEEL_OK; i++) {
        int origin = passing_origin(p, i);
        size_t place = passing_place(p, us.number, origin);
        status = replica_puts(0, r->to, place, block_of(origin), WORD + bytes_of(left_of(origin)));
    }
    replica_used(PARTNER_PASS, r->to, p->room);
    return status == KEEL_OK ? replica_signals(0, r->to, r->word, 1) : status;
}

static keel_status pass_round(enum wait_call call, int round)
{
    struct passing_round r = passing_round(&us.room->passing, round);
    const struct passing from = {r.from, replica.size, us.room->passing.room};
    int64_t come = (int64_t)us.number;
    keel_status status = pass_on(&r);
    if (status == KEEL_OK)
        status = acting_waits(call, us.room->segment, r.word, KEEL_GE, (int64_t)us.number, r.from, &come);
    for (int i = 0; i < r.blocks && status == KEEL_OK && has_left((uint64_t)come); i++)
        status = fetch_block(call, passing_origin(&from, i));
    return status;
}

/* One piece of each rank's bytes. *more: somebody has further ones. */
static keel_status pass_piece(enum wait_call call, const uint8_t *mine, uint64_t left, size_t at, replica_taker *take,
                              void *user, bool *more)
{
    us.number++;
    uint8_t *own = block_of(replica.rank);
    keel_status status = KEEL_OK;
    memcpy(own, &left, WORD);
    if (left)
        memcpy(own + WORD, mine + at, bytes_of(left));
    say_come(us.number);
    for (int k = 0; k < passing_rounds(replica.size) && status == KEEL_OK; k++)
        status = pass_round(call, k);
    for (int r = 0; r < replica.size && status == KEEL_OK; r++) {
        left = left_of(r);
        if (left != ABSENT)
            take(user, r, at, block_of(r) + WORD, bytes_of(left));
        *more = *more || (left != ABSENT && left > most());
    }
    return status;
}

keel_status replica_passes(enum replica_call call, const void *mine, size_t len, replica_taker *take, void *user)
{
    keel_status status = KEEL_OK;
    bool more = true;
    for (size_t at = 0; more && status == KEEL_OK; at += most()) {
        more = false;
        if (at)
            status = replica_meet(call);
        if (status == KEEL_OK)
            status = pass_piece(call_of(call), mine, at < len ? len - at : 0, at, take, user, &more);
    }
    return status;
}

/* ---- the end ---- */

keel_status replica_leaves(void)
{
    keel_status status = KEEL_OK;
    if (!replica.partners)
        return KEEL_OK;
    say_come(us.number | LEFT);
    for (int k = 0; k < passing_rounds(replica.size) && status == KEEL_OK; k++) {
        struct passing_round r = passing_round(&us.room->passing, k);
        status = replica_signals(0, r.to, r.word, (int64_t)LEFT);
        replica_used(PARTNER_SIGNAL, r.to, WORD);
    }
    FAULT_POINT("replica.has_left");
    return status == KEEL_OK ? replica_meet(CALL_finalize) : status; /* that all are told of it, in each set */
}
