/* survivors CALLS [LENGTH [LEFT]]: so many collectives of the world and of groups made on the way, while ranks die.
 * Each result is compared with what the members that it covers must have given, and printed: "CALL NAME STATUS MEMBERS
 * HASH". All who print a line for a call must print the same (survivors.py compares them). Exit code 1 if a result is
 * wrong. With LEFT it goes on after these with blocking calls, as long as it takes until no more than so many members
 * live. A process that takes a dead rank's place is no member: it ends at once. */
#include <keel/keel.h>

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long call;
static size_t length = 3000;
static int64_t *in, *out;

static _Noreturn void fail(const char *what, const char *how)
{
    fprintf(stderr, "survivors: rank %d call %ld: %s: %s\n", keel_rank(), call, what, how);
    fflush(NULL);
    _exit(1);
}

static void expect_ok(keel_status status, const char *what)
{
    if (status != KEEL_OK)
        fail(what, keel_status_name(status));
}

static int64_t value(int rank, long of, size_t i)
{
    return (rank + 1) * 1000003L + of * 31 + (int64_t)i * 7;
}

/* One line: who, which call, how it ended; members by rank of the job. */
static void tell(const char *name, keel_status status, const keel_group *g, const keel_covered *covered, uint64_t hash)
{
    char members[512] = "";
    for (int m = 0; covered && m < keel_group_size(g); m++)
        if (keel_covered_has(covered, m))
            snprintf(members + strlen(members), sizeof members - strlen(members), "%s%d", *members ? "," : "",
                     keel_group_to_world(g, m));
    printf("%d %ld %s %s %s %llx\n", keel_rank(), call, name, keel_status_name(status), *members ? members : "-",
           (unsigned long long)hash);
    fflush(stdout);
}

static uint64_t hash_of(const int64_t *data, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint64_t)data[i]) * 1099511628211u;
    return h;
}

static void allreduce(keel_group *g, size_t n)
{
    keel_request *r;
    keel_covered *covered;
    keel_combine sum = {.type = KEEL_INT64, .op = KEEL_SUM};
    for (size_t i = 0; i < n; i++)
        in[i] = value(keel_rank(), call, i);
    expect_ok(keel_group_allreduce_begin(g, in, out, n, &sum, &r), "allreduce");
    expect_ok(keel_request_wait(r, &covered), "allreduce");
    for (size_t i = 0; i < n; i++) {
        int64_t want = 0;
        for (int m = 0; m < keel_group_size(g); m++)
            want += keel_covered_has(covered, m) ? value(keel_group_to_world(g, m), call, i) : 0;
        if (out[i] != want)
            fail("allreduce", "wrong sum");
    }
    if (!keel_covered_has(covered, keel_group_rank(g)))
        fail("allreduce", "the caller is not covered");
    tell("allreduce", KEEL_OK, g, covered, hash_of(out, n));
    keel_covered_free(covered);
}

static void bcast(keel_group *g, size_t n)
{
    int root = (int)(call % keel_group_size(g));
    keel_request *r;
    for (size_t i = 0; i < n; i++)
        in[i] = value(keel_rank(), call, i);
    expect_ok(keel_group_bcast_begin(g, root, in, n * sizeof *in, &r), "bcast");
    keel_status status = keel_request_wait(r, NULL);
    if (status != KEEL_OK && status != KEEL_ERR_RANK_DEAD)
        fail("bcast", keel_status_name(status));
    for (size_t i = 0; status == KEEL_OK && i < n; i++)
        if (in[i] != value(keel_group_to_world(g, root), call, i))
            fail("bcast", "wrong bytes");
    tell("bcast", status, g, NULL, 0);
}

static void allgather(keel_group *g, size_t n)
{
    keel_request *r;
    keel_covered *covered;
    size_t members = (size_t)keel_group_size(g);
    n /= members;
    for (size_t i = 0; i < n; i++)
        in[i] = value(keel_rank(), call, i);
    expect_ok(keel_group_allgather_begin(g, in, out, n * sizeof *in, &r), "allgather");
    expect_ok(keel_request_wait(r, &covered), "allgather");
    for (size_t m = 0; m < members; m++)
        for (size_t i = 0; i < n; i++) {
            bool has = keel_covered_has(covered, (int)m);
            if (out[m * n + i] != (has ? value(keel_group_to_world(g, (int)m), call, i) : 0))
                fail("allgather", "wrong block");
        }
    tell("allgather", KEEL_OK, g, covered, hash_of(out, n * members));
    keel_covered_free(covered);
}

static void agree(keel_group *g)
{
    uint64_t result;
    expect_ok(keel_group_agree(g, KEEL_GROUP_OR, 1ull << keel_rank(), &result), "agree");
    if (!(result >> keel_rank() & 1))
        fail("agree", "the caller's value is not in it");
    tell("agree", KEEL_OK, g, NULL, result);
}

/* The number of members that it covers, the same for all who return. */
static int barrier(keel_group *g)
{
    keel_request *r;
    keel_covered *covered;
    int members = 0;
    expect_ok(keel_group_barrier_begin(g, &r), "barrier");
    expect_ok(keel_request_wait(r, &covered), "barrier");
    for (int m = 0; m < keel_group_size(g); m++)
        members += keel_covered_has(covered, m);
    tell("barrier", KEEL_OK, g, NULL, 0);
    keel_covered_free(covered);
    return members;
}

/* Where members meet in shared memory, and when, is a matter of time: a board that was left some times is tried at
 * each 64th call. */
static void until_left(keel_group *g, int left)
{
    for (; barrier(g) > left; call++)
        for (int i = 0; i < 64; i++, call++)
            agree(g);
}

/* The survivors as a group of their own go on with a reduction. */
static void on_survivors(keel_group *g)
{
    keel_group *s;
    uint64_t members = 0;
    expect_ok(keel_group_shrink(g, &s), "shrink");
    for (int m = 0; m < keel_group_size(s); m++)
        members |= 1ull << keel_group_to_world(s, m);
    tell("shrink", KEEL_OK, s, NULL, members);
    call++;
    allreduce(s, length / 2);
    expect_ok(keel_group_free(s), "free");
}

/* The same without a call of the group: the even ranks that live as far as each of them knows are not the same for all,
 * so the list is of all even ones, and the dead are left out. */
static void on_list(keel_group *g)
{
    int n = 0, *list = calloc((size_t)keel_size(), sizeof *list);
    keel_group *s;
    for (int m = 0; m < keel_group_size(g); m++)
        if (keel_group_to_world(g, m) % 2 == keel_rank() % 2)
            list[n++] = m;
    expect_ok(keel_group_shrink_among(g, list, n, &s), "shrink_among");
    free(list);
    call += keel_rank() % 2;
    allreduce(s, length / 3);
    call += 1 - keel_rank() % 2;
    expect_ok(keel_group_free(s), "free");
}

static void halves(keel_group *g)
{
    keel_group *s;
    expect_ok(keel_group_split(g, keel_rank() % 2, 0, &s), "split");
    call += keel_rank() % 2;
    allreduce(s, 5);
    call += 1 - keel_rank() % 2;
    expect_ok(keel_group_free(s), "free");
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 20;
    length = argc > 2 ? (size_t)atol(argv[2]) : length;
    int left = argc > 3 ? atoi(argv[3]) : INT_MAX;
    expect_ok(keel_init(), "init");
    keel_group *world = keel_group_world();
    in = calloc(length + 1, sizeof *in);
    out = calloc(length + 1, sizeof *out);
    if (!in || !out)
        fail("calloc", "no memory");
    for (; call < calls && !keel_restarted(); call++)
        switch (call % 9) {
        case 0:
            allreduce(world, length);
            break;
        case 1:
            bcast(world, length);
            break;
        case 2:
            agree(world);
            break;
        case 3:
            allgather(world, length);
            break;
        case 4:
            on_survivors(world); /* counts for two */
            break;
        case 6:
            on_list(world); /* for two */
            break;
        default:
            halves(world); /* for two */
            (void)barrier(world);
        }
    if (!keel_restarted())
        until_left(world, left);
    printf("%d end\n", keel_rank());
    expect_ok(keel_finalize(), "finalize");
    return 0;
}
