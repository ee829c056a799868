/* scarce: rank 0 has no memory now and then. In each call of a group the first allocation of Keel's that it makes
 * fails, then the second, and so on, until none is left; then the first one and some that follow it fail, the second
 * one and some that follow, ...; then that one and all others while it is in the call. Whatever fails, all ranks
 * return the same, and nobody waits. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"
#include "poor.h"

/* ---- an allocator that fails ---- */

static _Thread_local bool poor;
static int done, fail, total;
static enum { THAT_ONE, SOME_AFTER, ALL_AFTER, WAYS } way;

enum { SHORTAGE = 4 };

static bool poor_fails(void)
{
    if (!poor)
        return false;
    done++;
    total++;
    return done >= fail && (way == ALL_AFTER || done < fail + (way == SOME_AFTER ? SHORTAGE : 1));
}

/* ---- calls ---- */

enum { RANKS = 8, LONG = 4096, MOST = KEEL_MESSAGE_MAX };

static keel_group *g;
static int64_t in[RANKS * LONG], out[RANKS * LONG];
static size_t lens[RANKS], at[RANKS];
static const keel_combine sum = {.type = KEEL_INT64, .op = KEEL_SUM};

static keel_status barrier(void)
{
    return keel_group_barrier(g);
}

static keel_status allreduce(void)
{
    return keel_group_allreduce(g, in, out, 1, &sum);
}

static keel_status allreduce_long(void)
{
    return keel_group_allreduce(g, in, out, LONG, &sum);
}

static keel_status allreduce_in_place(void)
{
    return keel_group_allreduce(g, out, out, 100, &sum);
}

static keel_status bcast(void)
{
    return keel_group_bcast(g, 0, out, LONG);
}

static keel_status reduce(void)
{
    return keel_group_reduce(g, 1, in, out, 10, &sum);
}

static keel_status reduce_scatter(void)
{
    size_t n[RANKS];
    for (int i = 0; i < RANKS; i++)
        n[i] = 3;
    return keel_group_reduce_scatter(g, in, out, n, &sum);
}

static keel_status scan(void)
{
    return keel_group_scan(g, in, out, 10, &sum);
}

static keel_status alltoall(void)
{
    return keel_group_alltoall(g, in, out, 64);
}

static keel_status allgather_v(void)
{
    return keel_group_allgather_v(g, in, lens[keel_rank()], out, lens, at);
}

static keel_status gather_v(void)
{
    return keel_group_gather_v(g, 1, in, lens[keel_rank()], out, lens, at);
}

static keel_status scatter_v(void)
{
    return keel_group_scatter_v(g, 0, in, lens, at, out, lens[keel_rank()]);
}

static keel_status alltoall_v(void)
{
    return keel_group_alltoall_v(g, in, lens, at, out, lens, at);
}

static keel_status begun(void)
{
    keel_request *r;
    keel_covered *covered = NULL;
    keel_status status = keel_group_allreduce_begin(g, in, out, 1, &sum, &r);
    if (status == KEEL_ERR_LIMIT) { /* told to this rank alone: there is no memory for the request */
        poor = false;
        status = keel_group_allreduce_begin(g, in, out, 1, &sum, &r);
    }
    if (status == KEEL_OK)
        status = keel_request_wait(r, &covered);
    if (status == KEEL_OK)
        EXPECT(keel_covered_count(covered) == keel_size());
    keel_covered_free(covered);
    return status;
}

static keel_status agree(void)
{
    uint64_t value;
    return keel_group_agree(g, KEEL_GROUP_MAX, 7, &value);
}

static keel_status all_barrier(void)
{
    return keel_barrier();
}

static keel_status all_sum(void)
{
    double one = 1, all;
    return keel_allreduce_sum(&one, &all, 1);
}

/* ---- what makes groups ---- */

static int list[RANKS];

/* It is there for all or for none, and works. */
static keel_status made(keel_status status, keel_group *group)
{
    poor = false;
    EXPECT((status == KEEL_OK) == (group != NULL));
    if (!group) /* then with memory */
        CHECK(keel_group_create(list, keel_size(), 6, &group));
    EXPECT(keel_group_size(group) == keel_size());
    CHECK(keel_group_barrier(group));
    CHECK(keel_group_free(group));
    return status;
}

static keel_status split(void)
{
    keel_group *group;
    keel_status status = keel_group_split(g, 1, -keel_rank(), &group);
    return made(status, group);
}

static keel_status shrink(void)
{
    keel_group *group;
    keel_status status = keel_group_shrink(g, &group);
    return made(status, group);
}

/* KEEL_ERR_LIMIT is told to this rank alone: the last creation of that list, which had no memory either, is not
 * over. */
static keel_status shrink_among(void)
{
    keel_group *group;
    keel_status status;
    while ((status = keel_group_shrink_among(g, list, keel_size(), &group)) == KEEL_ERR_LIMIT)
        poor = false;
    return made(status, group);
}

static keel_status create(void)
{
    keel_group *group;
    keel_status status;
    while ((status = keel_group_create(list, keel_size(), 5, &group)) == KEEL_ERR_LIMIT)
        poor = false;
    return made(status, group);
}

/* ---- segments ---- */

/* It is there for all or for none, and has all its parts. */
static keel_status allocated(keel_status status, keel_segment *s)
{
    int64_t word = keel_rank(), there = -1;
    int right = (keel_rank() + 1) % keel_size();
    EXPECT((status == KEEL_OK) == (s != NULL));
    if (s) {
        bool was_poor = poor;
        poor = false;
        CHECK(keel_put(s, right, 8, &word, sizeof word));
        CHECK(keel_group_barrier(g));
        CHECK(keel_get(s, keel_rank(), 8, &there, sizeof there));
        EXPECT(there == (keel_rank() + keel_size() - 1) % keel_size());
        CHECK(keel_group_barrier(g));
        poor = was_poor;
        keel_status freed = keel_segment_free(s);
        bool not_yet = freed == KEEL_ERR_NOMEM;
        poor = false;
        while (freed == KEEL_ERR_NOMEM || freed == KEEL_ERR_LIMIT) { /* it is there as before */
            EXPECT(keel_segment_bytes(s, right) >= 16);
            freed = keel_segment_free(s);
        }
        CHECK(freed);
        if (not_yet)
            return KEEL_ERR_NOMEM; /* as all were told */
    }
    return status;
}

static keel_status segment(void)
{
    keel_segment *s;
    keel_status status = keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &s);
    return allocated(status, s);
}

/* KEEL_ERR_LIMIT is told to this rank alone; the same call goes on. */
static keel_status segment_of_group(void)
{
    keel_segment *s;
    keel_status status;
    while ((status = keel_segment_alloc_group(g, lens, KEEL_REDUNDANCY_SHADOW, &s)) == KEEL_ERR_LIMIT) {
        EXPECT(!s);
        poor = false;
    }
    return allocated(status, s);
}

/* Freed with memory. */
static keel_status mutexes(void)
{
    keel_mutexes *m;
    keel_status status = keel_mutexes_create(2, &m);
    poor = false;
    EXPECT((status == KEEL_OK) == (m != NULL));
    CHECK(keel_mutexes_free(m));
    return status;
}

static keel_status pool(void)
{
    keel_taskpool *p;
    keel_status status = keel_taskpool_create(9, &p);
    poor = false;
    EXPECT((status == KEEL_OK) == (p != NULL));
    CHECK(keel_taskpool_free(p));
    return status;
}

static void found_memory(void)
{
    poor = poor && way != ALL_AFTER;
}

/* Each other rank and the one without memory send each other messages: what there is no memory for is not sent, and
 * what comes waits for it. */
static keel_status mail(void)
{
    static const size_t length[] = {0,    100,  4 * LONG, MOST,
                                    MOST, MOST, MOST}; /* so that who receives them tells so once each time */
    for (size_t k = 0; k < sizeof length / sizeof length[0]; k++)
        for (int r = 0; r < keel_size(); r++) {
            keel_status sent, got;
            size_t len = 0;
            if (keel_rank() && r)
                continue;
            while ((sent = keel_message_send(r, 5, in, length[k])) == KEEL_ERR_NOMEM)
                found_memory();
            CHECK(sent);
            while ((got = keel_message_receive(r, 5, out, sizeof out, &len, NULL)) == KEEL_ERR_NOMEM)
                found_memory();
            CHECK(got);
            EXPECT(len == length[k] && memcmp(in, out, len) == 0);
        }
    return KEEL_OK;
}

static const struct call {
    const char *name;
    keel_status (*make)(void);
} calls[] = {
    {"mutexes", mutexes}, /* before anything else that has a number (living.h) */
    {"pool", pool},
    {"barrier", barrier},
    {"allreduce", allreduce},
    {"allreduce, long", allreduce_long},
    {"allreduce, in place", allreduce_in_place},
    {"bcast", bcast},
    {"reduce", reduce},
    {"reduce_scatter", reduce_scatter},
    {"scan", scan},
    {"alltoall", alltoall},
    {"allgather_v", allgather_v},
    {"gather_v", gather_v},
    {"scatter_v", scatter_v},
    {"alltoall_v", alltoall_v},
    {"begun", begun},
    {"agree", agree},
    {"split", split},
    {"shrink", shrink},
    {"shrink among", shrink_among},
    {"create", create},
    {"mail", mail},
    {"segment", segment},
    {"segment of a group", segment_of_group},
    {"barrier of all", all_barrier},
    {"sum of all", all_sum},
};

/* ---- the sweep ---- */

/* True: all allocations were made. */
static bool one(const struct call *call)
{
    uint64_t least, most, through;
    done = 0;
    poor = keel_rank() == 0;
    keel_status status = call->make();
    poor = false;
    if (status != KEEL_OK && status != KEEL_ERR_NOMEM) {
        fprintf(stderr, "rank %d: %s, allocation %d: %s\n", keel_rank(), call->name, fail, keel_status_name(status));
        EXPECT(false);
    }
    CHECK(keel_group_agree(g, KEEL_GROUP_MIN, (uint64_t)(status == KEEL_OK), &least));
    CHECK(keel_group_agree(g, KEEL_GROUP_MAX, (uint64_t)(status == KEEL_OK), &most));
    CHECK(keel_group_agree(g, KEEL_GROUP_MAX, keel_rank() == 0 && done < fail, &through));
    if (least != most)
        fprintf(stderr, "rank %d: %s, allocation %d: %s\n", keel_rank(), call->name, fail, keel_status_name(status));
    EXPECT(least == most);
    return through;
}

static void sweep(const struct call *call)
{
    for (way = THAT_ONE; way < WAYS; way++) {
        bool through = false;
        for (fail = 1; !through; fail++)
            through = one(call);
    }
}

int main(void)
{
    CHECK(keel_init());
    poor_find();
    EXPECT(poor_to > poor_from && keel_size() <= RANKS);
    g = keel_group_world();
    for (int i = 0; i < RANKS; i++) {
        lens[i] = 16;
        at[i] = 16 * (size_t)i;
        in[i] = i + 1;
        list[i] = i == 0 ? 1 : i == 1 ? 0 : i; /* no stride */
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        sweep(&calls[i]);
    EXPECT(keel_rank() != 0 || total > 100);
    keel_finalize();
    return 0;
}
