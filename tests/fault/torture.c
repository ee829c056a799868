/* torture SEED PHASES WORDS TASKS: random puts, gets, accumulates and fetch-and-adds against a model, while somebody
 * else kills nodes and ranks. Every element is checked after every phase. Public API only.
 *
 *   cells      part r holds one region of WORDS words for each writer w; only w puts there, each element at most once
 *              per
 *              phase, values known from (seed, w, r, element, phase): a rank that comes back may repeat its phase
 *   sums       accumulated inside tasks only: integers, so that the order is of no account
 *   counters   word w of part r: fetched-and-added by w only, up to a known number; who comes back reads how far it got
 *   tickets    one counter for all on rank 0's part; each number drawn is marked by compare-and-swap, so twice is found
 *   frail      unreplicated: right, or KEEL_ERR_DATA_LOST
 *
 *   phase p    work, barrier, check, reset of the pool (a barrier): the count of collectives tells who comes back where
 *              to go on
 *
 * Exit code 0: all right; 1: wrong data; 3: KEEL_ERR_DATA_LOST of replicated data; 4: another error. */
#include <keel/keel.h>

#include "rest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MAX = 16, SUMS = 64, TICKETS = 1 << 13, HANDLES = 16, EXIT_WRONG = 1, EXIT_LOST = 3, EXIT_ERROR = 4 };

static uint64_t seed;
static int phases, tasks, me, n, phase;
static size_t words;
static bool in_check;
static keel_segment *cells, *sums, *counters, *tickets, *frail;
static keel_taskpool *pool;
/* [writer][part][element]: the phase that wrote it last, as of the phase before, this one and the next */
static uint16_t *before, *after, *next;
static uint64_t *out;     /* [part][element] what this rank writes in this phase */
static uint64_t *scratch; /* [words] */
static int64_t sum_model[RANKS_MAX][SUMS];

static _Noreturn void fail(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "torture: seed %llu rank %d phase %d %s: ", (unsigned long long)seed, me, phase,
            in_check ? "check" : "work");
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    fflush(NULL);
    _exit(code);
}

static void expect_ok(keel_status status, const char *what, int rank)
{
    if (status == KEEL_ERR_DATA_LOST)
        fail(EXIT_LOST, "%s of rank %d: %s", what, rank, keel_status_text(status));
    if (status != KEEL_OK)
        fail(EXIT_ERROR, "%s of rank %d: %s", what, rank, keel_status_name(status));
}

/* ---- deterministic randomness ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t key(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return mix(mix(mix(mix(seed ^ a) ^ b) ^ c) ^ d);
}

static uint64_t draw(uint64_t *state)
{
    return *state = mix(*state + 1);
}

static size_t below(uint64_t *state, size_t limit)
{
    return limit ? (size_t)(draw(state) % limit) : 0;
}

/* ---- the model of the cells ---- */

static size_t cell(int writer, int part, size_t i)
{
    return ((size_t)writer * (size_t)n + (size_t)part) * words + i;
}

static uint64_t cell_value(int writer, int part, size_t i, int p)
{
    return p ? key(1, (uint64_t)writer << 32 | (uint32_t)part, i, (uint64_t)p) : 0;
}

/* The ranges that writer puts into its region of part in phase p, one after the other, disjoint. */
struct walk {
    uint64_t random;
    size_t at, len;
    bool none;
};

static struct walk walk_begin(int writer, int part, int p)
{
    struct walk k = {.random = key(2, (uint64_t)writer, (uint64_t)part, (uint64_t)p)};
    k.none = below(&k.random, 3) == 0;
    return k;
}

static bool walk_next(struct walk *k)
{
    static const size_t most[] = {1, 8, 64, 1000, SIZE_MAX};
    k->at += k->len + below(&k->random, words / 3 + 1);
    if (k->none || k->at >= words)
        return false;
    size_t limit = most[below(&k->random, 5)];
    size_t left = words - k->at;
    k->len = 1 + below(&k->random, limit < left ? limit : left);
    return true;
}

static void model_apply(uint16_t *model, int p)
{
    for (int w = 0; w < n; w++)
        for (int r = 0; r < n; r++)
            for (struct walk k = walk_begin(w, r, p); walk_next(&k);)
                for (size_t i = k.at; i < k.at + k.len; i++)
                    model[cell(w, r, i)] = (uint16_t)p;
}

/* The models of phase p, from those of p - 1 or from nothing. */
static void model_advance(int p)
{
    size_t bytes = sizeof *after * (size_t)n * (size_t)n * words;
    memcpy(before, after, bytes);
    memcpy(after, next, bytes);
    model_apply(next, p + 1);
}

/* ---- the model of the sums ---- */

struct add {
    int part;
    size_t at, len;
    double value[SUMS];
};

static int task_adds(int p, int64_t task, uint64_t *random)
{
    *random = key(3, (uint64_t)p, (uint64_t)task, 0);
    return 1 + (int)below(random, 5);
}

static void task_add(uint64_t *random, struct add *a)
{
    a->part = (int)below(random, (size_t)n);
    a->at = below(random, SUMS);
    a->len = 1 + below(random, SUMS - a->at);
    for (size_t i = 0; i < a->len; i++)
        a->value[i] = (double)below(random, 1000);
}

static void sums_apply(int p)
{
    struct add a;
    uint64_t random;
    for (int64_t t = 0; t < tasks; t++)
        for (int i = task_adds(p, t, &random); i > 0; i--) {
            task_add(&random, &a);
            for (size_t k = 0; k < a.len; k++)
                sum_model[a.part][a.at + k] += 2 * (int64_t)a.value[k];
        }
}

/* Additions to the counter of (writer, part) up to the end of phase p. */
static int64_t count_target(int writer, int part, int p)
{
    int64_t total = 0;
    for (int q = 1; q <= p; q++)
        total += (int64_t)(key(4, (uint64_t)writer, (uint64_t)part, (uint64_t)q) % 4);
    return total;
}

/* ---- work ---- */

static void put_region(int part, uint64_t *random)
{
    keel_handle handle[HANDLES];
    bool pending[HANDLES] = {false};
    uint64_t *from = out + (size_t)part * words;
    for (struct walk k = walk_begin(me, part, phase); walk_next(&k);) {
        for (size_t i = k.at; i < k.at + k.len; i++)
            from[i] = cell_value(me, part, i, phase);
        size_t offset = 8 * ((size_t)me * words + k.at);
        size_t h = below(random, HANDLES);
        switch (below(random, 3)) {
        case 0:
            expect_ok(keel_put(cells, part, offset, from + k.at, 8 * k.len), "put", part);
            break;
        case 1:
            expect_ok(keel_put_nb(cells, part, offset, from + k.at, 8 * k.len, NULL), "implicit put", part);
            break;
        default:
            if (pending[h])
                expect_ok(keel_wait(&handle[h]), "wait", part);
            pending[h] = true;
            expect_ok(keel_put_nb(cells, part, offset, from + k.at, 8 * k.len, &handle[h]), "put_nb", part);
        }
    }
    for (int h = 0; h < HANDLES; h++)
        if (pending[h])
            expect_ok(keel_wait(&handle[h]), "wait", part);
}

/* Is the element what `writer` left there in one of the phases p and q? In any, if the writer is dead for good. */
static bool cell_is_right(int writer, int part, size_t i, uint64_t got, int p, int q)
{
    if (got == cell_value(writer, part, i, p) || got == cell_value(writer, part, i, q))
        return true;
    for (int any = 0; !keel_rank_alive(writer) && any <= phase + 1; any++)
        if (got == cell_value(writer, part, i, any))
            return true;
    return false;
}

static void wrong_cell(int writer, int part, size_t i, uint64_t got)
{
    int from = -1;
    for (int p = 0; p <= phases; p++)
        if (got == cell_value(writer, part, i, p))
            from = p;
    fail(EXIT_WRONG,
         "WRONG: element %zu of writer %d in part %d is %llx, of phase %d; should be of phase %d or %d (node %d)", i,
         writer, part, (unsigned long long)got, from, before[cell(writer, part, i)], after[cell(writer, part, i)],
         keel_rank_node(part));
}

static void get_random(uint64_t *random)
{
    int part = (int)below(random, (size_t)n), writer = (int)below(random, (size_t)n);
    size_t at = below(random, words), len = 1 + below(random, words - at);
    expect_ok(keel_get(cells, part, 8 * ((size_t)writer * words + at), scratch, 8 * len), "get", part);
    for (size_t i = at; i < at + len; i++)
        if (!cell_is_right(writer, part, i, scratch[i - at], before[cell(writer, part, i)],
                           after[cell(writer, part, i)]))
            wrong_cell(writer, part, i, scratch[i - at]);
}

static void count_up(int part)
{
    int64_t target = count_target(me, part, phase), now, old;
    expect_ok(keel_get(counters, part, 8 * (size_t)me, &now, 8), "get of the counter", part);
    if (now > target || now < 0)
        fail(EXIT_WRONG, "WRONG: counter of rank %d in part %d is %lld, beyond %lld", me, part, (long long)now,
             (long long)target);
    for (; now < target; now++) {
        expect_ok(keel_fetch_add(counters, part, 8 * (size_t)me, 1, &old), "fetch_add", part);
        if (old != now)
            fail(EXIT_WRONG, "WRONG: fetch_add in part %d gave %lld instead of %lld", part, (long long)old,
                 (long long)now);
    }
}

static void take_ticket(void)
{
    int64_t mine, old;
    expect_ok(keel_fetch_add(tickets, 0, 0, 1, &mine), "ticket", 0);
    if (mine < 0 || mine >= (int64_t)TICKETS - 1)
        return;
    int part = (int)(mine % n);
    expect_ok(keel_compare_swap(tickets, part, 8 + 8 * (size_t)(mine / n), 0, me + 1, &old), "mark", part);
    if (old != 0)
        fail(EXIT_WRONG, "WRONG: ticket %lld was drawn twice, by rank %lld before", (long long)mine,
             (long long)old - 1);
}

static void use_frail(uint64_t *random)
{
    int part = (int)below(random, (size_t)n);
    uint64_t value = draw(random), got = 0;
    expect_ok(keel_put(frail, part, 8 * (size_t)me, &value, 8), "unreplicated put", part);
    keel_status status = keel_get(frail, part, 8 * (size_t)me, &got, 8);
    if (status == KEEL_OK && got != value)
        fail(EXIT_WRONG, "WRONG: unreplicated word in part %d is %llx instead of %llx", part, (unsigned long long)got,
             (unsigned long long)value);
    if (status != KEEL_OK && status != KEEL_ERR_DATA_LOST)
        expect_ok(status, "unreplicated get", part);
}

static void run_tasks(void)
{
    int64_t task;
    struct add a;
    uint64_t random;
    for (;;) {
        expect_ok(keel_task_next(pool, &task), "task_next", -1);
        if (task < 0)
            return;
        for (int i = task_adds(phase, task, &random); i > 0; i--) {
            task_add(&random, &a);
            expect_ok(keel_acc_double(sums, a.part, 8 * a.at, 2.0, a.value, a.len), "accumulate", a.part);
        }
        expect_ok(keel_task_commit(pool, task), "task_commit", -1);
    }
}

static void work(void)
{
    uint64_t random = key(5, (uint64_t)me, (uint64_t)phase, (uint64_t)getpid());
    in_check = false;
    for (int k = 0; k < n; k++) {
        int part = (me + k) % n;
        put_region(part, &random);
        get_random(&random);
        count_up(part);
        take_ticket();
        use_frail(&random);
    }
    expect_ok(keel_fence_all(), "fence_all", -1);
    run_tasks();
}

/* ---- check ---- */

static void check_cells(bool late)
{
    bool alive[RANKS_MAX];
    for (int w = 0; w < n; w++)
        alive[w] = keel_rank_alive(w);
    for (int w = 0; w < n; w++)
        for (int r = 0; r < n; r++) {
            expect_ok(keel_get(cells, r, 8 * (size_t)w * words, scratch, 8 * words), "get", r);
            for (size_t i = 0; i < words; i++) {
                int p = after[cell(w, r, i)], q = late ? next[cell(w, r, i)] : p;
                bool right = alive[w] ? scratch[i] == cell_value(w, r, i, p) || scratch[i] == cell_value(w, r, i, q)
                                      : cell_is_right(w, r, i, scratch[i], p, q);
                if (!right && !cell_is_right(w, r, i, scratch[i], p, q))
                    wrong_cell(w, r, i, scratch[i]);
            }
        }
}

static void check_sums(void)
{
    double got[SUMS];
    for (int r = 0; r < n; r++) {
        expect_ok(keel_get(sums, r, 0, got, sizeof got), "get of sums", r);
        for (int i = 0; i < SUMS; i++)
            if (got[i] != (double)sum_model[r][i])
                fail(EXIT_WRONG, "WRONG: sum %d of part %d is %.0f instead of %lld", i, r, got[i],
                     (long long)sum_model[r][i]);
    }
}

static void check_counters(bool late)
{
    int64_t got[RANKS_MAX];
    for (int r = 0; r < n; r++) {
        expect_ok(keel_get(counters, r, 0, got, 8 * (size_t)n), "get of counters", r);
        for (int w = 0; w < n; w++) {
            int64_t target = count_target(w, r, phase), most = late ? count_target(w, r, phase + 1) : target;
            int64_t least = keel_rank_alive(w) ? target : 0;
            if (got[w] < least || got[w] > most)
                fail(EXIT_WRONG, "WRONG: counter of rank %d in part %d is %lld, not %lld", w, r, (long long)got[w],
                     (long long)target);
        }
    }
}

/* Who came back in the middle of a check may find the others already in the next phase's work (keel_resume): late. */
static void check(bool late)
{
    in_check = true;
    check_cells(late);
    if (!late)
        check_sums();
    check_counters(late);
}

static long count_marks(int64_t *drawn)
{
    long found = 0;
    int64_t *part = calloc(TICKETS, sizeof *part);
    if (!part)
        fail(EXIT_ERROR, "out of memory");
    expect_ok(keel_get(tickets, 0, 0, drawn, 8), "get of the tickets", 0);
    size_t share = (size_t)(TICKETS / n);
    for (int r = 0; r < n; r++) {
        expect_ok(keel_get(tickets, r, 8, part, 8 * share), "get of marks", r);
        for (size_t i = 0; i < share; i++) {
            found += part[i] != 0;
            if (part[i] && (int64_t)i * n + r >= *drawn)
                fail(EXIT_WRONG, "WRONG: ticket %lld is marked but was not drawn", (long long)i * n + r);
        }
    }
    free(part);
    return found;
}

/* ---- the program ---- */

static void allocate(void)
{
    size_t cells_count = (size_t)n * (size_t)n * words;
    before = calloc(cells_count, sizeof *before);
    after = calloc(cells_count, sizeof *after);
    next = calloc(cells_count, sizeof *next);
    out = calloc((size_t)n * words, sizeof *out);
    scratch = calloc(words, sizeof *scratch);
    if (!before || !after || !next || !out || !scratch)
        fail(EXIT_ERROR, "out of memory");
    keel_redundancy kept = seed % 2 ? KEEL_REDUNDANCY_TRIPLE : KEEL_REDUNDANCY_SHADOW;
    expect_ok(keel_segment_alloc(8 * (size_t)n * words, kept, &cells), "alloc", -1);
    expect_ok(keel_segment_alloc(8 * SUMS, kept, &sums), "alloc", -1);
    expect_ok(keel_segment_alloc(8 * (size_t)n, kept, &counters), "alloc", -1);
    expect_ok(keel_segment_alloc(8 + 8 * (size_t)(TICKETS / n), kept, &tickets), "alloc", -1);
    expect_ok(keel_segment_alloc(8 * (size_t)n, KEEL_REDUNDANCY_NONE, &frail), "alloc", -1);
    expect_ok(keel_taskpool_create(tasks, &pool), "taskpool", -1);
}

static void finish(void)
{
    /* Every rank says it: what a node has printed last may die with it. */
    int64_t drawn = 0;
    long found = count_marks(&drawn);
    printf("torture: seed %llu: all right, %d ranks, %d phases, %lld tickets, %lld lost\n", (unsigned long long)seed, n,
           phases, (long long)drawn, (long long)drawn - found);
    fflush(stdout);
    expect_ok(keel_barrier(), "barrier", -1);
    keel_status status = keel_finalize();
    expect_ok(status, "finalize", -1);
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || *end || end == text || value < least || value > most) {
        fprintf(stderr, "usage: torture SEED PHASES WORDS TASKS\n");
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    seed = (uint64_t)number(argc == 5 ? argv[1] : NULL, 0, 1000000000);
    phases = (int)number(argv[2], 1, 60000);
    words = (size_t)number(argv[3], 1, 1 << 24);
    tasks = (int)number(argv[4], 0, 100000);
    keel_status status = keel_init();
    if (status != KEEL_OK)
        fail(EXIT_ERROR, "keel_init: %s", keel_status_name(status));
    me = keel_rank();
    n = keel_size();
    if (n > RANKS_MAX)
        fail(2, "more than %d ranks", RANKS_MAX);
    allocate();
    uint64_t done = 0;
    if (keel_restarted())
        expect_ok(keel_resume(&done), "resume", -1);
    model_apply(next, 1);
    for (int p = 1; p <= (int)(done / 2); p++) {
        model_advance(p);
        sums_apply(p);
    }
    bool to_check = done % 2;
    if (done && !to_check && rest_is_end((long)(done / 2))) /* the others have done all there is */
        phases = (int)(done / 2);
    for (phase = (int)(done / 2) + 1; phase <= phases; phase++) {
        model_advance(phase);
        sums_apply(phase);
        (void)keel_event("phase", phase, NULL); /* who kills wants to know when */
        if (!to_check) {
            work();
            expect_ok(keel_barrier(), "barrier", -1);
        }
        check(to_check);
        to_check = false;
        rest_point(phase, phase == phases);
        if (rest_is_end(phase))
            phases = phase;
        expect_ok(keel_taskpool_reset(pool), "reset", -1);
    }
    finish();
    return 0;
}
