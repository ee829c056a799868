/* Replicas execute what does not commute in one order (runtime/agent/order.c): by hand, and many runs of sets whose
 * messages take any time, and which are retired in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/agent/order.h"
#include "tests/unit/data/memory.h"
#include "tests/unit/data/seed.h"

/* ---- by hand ---- */

struct seen {
    char text[512]; /* x: executed, a: answered, d: differs, each with the op; s: sent, k: acknowledged, with numbers */
};

static void note(struct seen *s, const char *what, int number)
{
    size_t len = strlen(s->text);
    snprintf(s->text + len, sizeof s->text - len, "%s%d ", what, number);
}

static int number_of_op(const void *op)
{
    return *(const int *)op;
}

static void seen_execute(void *user, void *op)
{
    note(user, "x", number_of_op(op));
}

static void seen_answer(void *user, void *op)
{
    note(user, "a", number_of_op(op));
}

static void seen_differ(void *user, void *op, const struct order_entry *entry)
{
    (void)entry;
    note(user, "d", number_of_op(op));
}

static void seen_send(void *user, uint64_t first, const struct order_entry *entry, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        note(user, "s", (int)(first + i));
        note(user, "=", (int)entry[i].name.number);
    }
}

static void seen_ack(void *user, uint64_t upto)
{
    note(user, "k", (int)upto);
}

static const struct order_ops SEEN = {
    .execute = seen_execute, .answer = seen_answer, .differ = seen_differ, .send = seen_send, .ack = seen_ack};

static void expect(struct seen *s, const char *text)
{
    assert_string_equal(s->text, text);
    s->text[0] = 0;
}

static struct order_name named(uint64_t number)
{
    return (struct order_name){.origin = 1, .number = number};
}

static struct order_entry entry_of(uint64_t number)
{
    return (struct order_entry){named(number), 0};
}

static int ops[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void come(struct order *o, int number)
{
    assert_true(order_arrived(o, named((uint64_t)number), 0, &ops[number]));
}

static void test_order_leader_executes_at_once_and_answers_when_the_last_has_it(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, true, true, &SEEN, &s);
    come(&o, 5);
    come(&o, 3);
    expect(&s, "s1 =5 x5 s2 =3 x3 ");
    order_acked(&o, 1);
    expect(&s, "a5 ");
    order_acked(&o, 1);
    expect(&s, "");
    order_acked(&o, 9); /* more than there are */
    expect(&s, "a3 ");
    come(&o, 4);
    expect(&s, "s3 =4 x4 ");
    order_fini(&o);
}

static void test_order_alone_answers_at_once(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, true, false, &SEEN, &s);
    come(&o, 7);
    expect(&s, "x7 a7 ");
    order_fini(&o);
}

static void test_order_last_set_holds_what_has_no_entry(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, false, &SEEN, &s);
    come(&o, 3);
    come(&o, 4);
    expect(&s, "");
    assert_true(order_entries(&o, 1, (struct order_entry[]){entry_of(5), entry_of(3)}, 2));
    expect(&s, "k2 "); /* 5 has not come */
    come(&o, 5);
    expect(&s, "x5 x3 a5 a3 ");
    assert_true(order_entries(&o, 2, (struct order_entry[]){entry_of(3), entry_of(4)}, 2)); /* one of them again */
    expect(&s, "x4 k3 a4 ");
    assert_false(order_entries(&o, 5, (struct order_entry[]){entry_of(6)}, 1)); /* the 4th is missing */
    assert_true(order_entries(&o, 3, (struct order_entry[]){entry_of(4)}, 1));
    expect(&s, "k3 "); /* who sends it again is told again */
    order_fini(&o);
}

static void test_order_middle_passes_on_and_answers_when_told(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, true, &SEEN, &s);
    assert_true(order_entries(&o, 1, (struct order_entry[]){entry_of(1)}, 1));
    expect(&s, "s1 =1 k0 ");
    come(&o, 1);
    expect(&s, "x1 ");
    order_acked(&o, 1);
    expect(&s, "k1 a1 ");
    order_fini(&o);
}

static void test_order_next_leader_waits_for_what_was_decided(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, true, &SEEN, &s);
    come(&o, 8); /* nobody has decided this one */
    assert_true(order_entries(&o, 1, (struct order_entry[]){entry_of(1), entry_of(2)}, 2));
    come(&o, 2);
    expect(&s, "s1 =1 s2 =2 k0 ");
    assert_true(order_chain(&o, true, true));
    expect(&s, "s1 =1 s2 =2 s3 =8 ");
    come(&o, 1);
    expect(&s, "x1 x2 x8 ");
    assert_true(order_chain(&o, true, false)); /* and the last one */
    expect(&s, "a1 a2 a8 ");
    order_fini(&o);
}

static void test_order_gap_is_closed(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, true, true, &SEEN, &s);
    come(&o, 1);
    come(&o, 2);
    come(&o, 3);
    order_acked(&o, 1);
    s.text[0] = 0;
    assert_true(order_chain(&o, true, true));
    expect(&s, "s2 =2 s3 =3 ");
    order_fini(&o);
}

static void test_order_another_operation_of_the_same_name_is_told_and_has_its_place(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, false, &SEEN, &s);
    assert_true(order_arrived(&o, named(1), 11, &ops[1]));
    assert_true(order_entries(&o, 1, (struct order_entry[]){{named(1), 12}, {named(2), 22}}, 2));
    expect(&s, "d1 x1 k2 a1 ");
    assert_true(order_arrived(&o, named(2), 23, &ops[2]));
    expect(&s, "d2 x2 a2 ");
    order_fini(&o);
}

static void test_order_what_comes_again_is_executed_once(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, true, true, &SEEN, &s);
    come(&o, 1);
    expect(&s, "s1 =1 x1 ");
    assert_true(order_repeated(&o, named(1), &ops[9]));
    order_forget(&o, &ops[9]);
    order_acked(&o, 1);
    expect(&s, "");
    assert_false(order_repeated(&o, named(1), &ops[9]));
    order_fini(&o);
    order_init(&o, false, false, &SEEN, &s);
    come(&o, 1);
    assert_true(order_arrived(&o, named(1), 0, &ops[9]));
    come(&o, 2);
    order_forget(&o, &ops[2]);
    assert_true(order_entries(&o, 1, (struct order_entry[]){entry_of(1), entry_of(2)}, 2));
    expect(&s, "x9 k2 a9 ");
    come(&o, 2);
    expect(&s, "x2 a2 ");
    order_fini(&o);
}

static void test_order_who_is_behind_is_waited_for(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, false, &SEEN, &s);
    for (uint64_t n = 1; n <= ORDER_AHEAD + 2; n++) {
        struct order_entry e = entry_of(n);
        s.text[0] = 0;
        assert_true(order_entries(&o, n, &e, 1));
    }
    expect(&s, "k4096 ");
    come(&o, 1);
    expect(&s, "x1 k4097 a1 ");
    order_fini(&o);
}

static void test_order_without_memory_nothing_has_happened(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, false, false, &SEEN, &s);
    struct order_entry e = entry_of(1);
    memory_fail_at(1);
    assert_false(order_arrived(&o, named(1), 0, &ops[1]));
    memory_fail_at(1);
    assert_false(order_entries(&o, 1, &e, 1));
    assert_true(memory_failed());
    expect(&s, "");
    come(&o, 1);
    memory_fail_at(1);
    assert_false(order_chain(&o, true, false));
    assert_true(memory_failed());
    assert_true(order_chain(&o, true, false));
    expect(&s, "x1 a1 ");
    order_fini(&o);
}

static void test_order_begins_anew_where_nothing_is_under_way(void **state)
{
    (void)state;
    struct seen s = {""};
    struct order o;
    order_init(&o, true, true, &SEEN, &s);
    come(&o, 1);
    assert_false(order_begin_anew(&o, false, true)); /* the last one has not got it */
    order_acked(&o, 1);
    s.text[0] = 0;
    assert_true(order_begin_anew(&o, false, true));
    come(&o, 2);
    assert_false(order_begin_anew(&o, true, false)); /* it has no entry */
    assert_true(order_entries(&o, 1, (struct order_entry[]){entry_of(2)}, 1));
    expect(&s, "s1 =2 x2 k0 ");
    order_acked(&o, 1);
    expect(&s, "k1 a2 ");
    order_fini(&o);
}

/* ---- sets whose messages take any time, which are retired, and join again where all stand still ---- */

enum { SETS = 3, RANKS = 4, PARTS = 3, OPS = 40, PAUSE = 10, QUEUE = 4 * OPS * RANKS * PARTS };

enum kind { OPERATION, ANSWER, ENTRIES, ACK, KINDS };

struct letter {
    int rank, number; /* OPERATION, ANSWER */
    uint64_t value;   /* what is added; what was there before; ACK: up to which */
    struct order_entry entry;
    int view; /* joins that the sender knew of */
};

/* In order: from a set to a set, of a part; operations and answers apart for each rank. */
struct queue {
    struct letter letter[QUEUE];
    size_t first, end;
};

struct sim;
struct holder { /* an agent, of one part */
    struct sim *sim;
    int set, part;
    bool gone[SETS]; /* as its view says */
    struct order order;
    uint64_t word;
    struct letter got[RANKS][OPS]; /* the operations, value: added; then what was there before */
    bool is_executed[RANKS][OPS];
};

struct runner { /* a process of a rank */
    int begun, told;
    uint64_t result[OPS];
    bool has[OPS];
};

struct sim {
    struct rng rng;
    uint64_t seed;
    int sets, joins, limit; /* limit: operations up to the next place where sets join */
    bool stopped[SETS];
    struct holder holder[SETS][PARTS];
    struct runner runner[SETS][RANKS];
    struct queue queue[KINDS][SETS][SETS][PARTS][RANKS];
    bool is_known[RANKS][OPS];
    uint64_t known[RANKS][OPS]; /* what anybody was told */
};

static uint64_t mixed(uint64_t a, uint64_t b)
{
    struct rng r;
    rng_seed(&r, a * 0x9e3779b97f4a7c15u ^ b);
    return rng_u64(&r);
}

static void post(const struct sim *s, struct queue *q, struct letter letter)
{
    assert_true(q->end < QUEUE);
    letter.view = s->joins;
    q->letter[q->end++] = letter;
}

/* The nearest set that lives as the holder knows; -1: none. */
static int neighbour(const struct holder *h, int step)
{
    int set = h->set + step;
    while (set >= 0 && set < h->sim->sets && h->gone[set])
        set += step;
    return set >= 0 && set < h->sim->sets ? set : -1;
}

static void sim_execute(void *user, void *op)
{
    struct holder *h = user;
    struct letter *l = op;
    assert_false(h->is_executed[l->rank][l->number]);
    h->is_executed[l->rank][l->number] = true;
    uint64_t before = h->word;
    h->word = mixed(h->word, l->value);
    l->value = before;
}

static void sim_answer(void *user, void *op)
{
    struct holder *h = user;
    struct letter *l = op;
    post(h->sim, &h->sim->queue[ANSWER][h->set][h->set][h->part][l->rank], *l);
}

static void sim_differ(void *user, void *op, const struct order_entry *entry)
{
    (void)user;
    (void)op;
    (void)entry;
    fail_msg("sets differ");
}

static void sim_send(void *user, uint64_t first, const struct order_entry *entry, size_t n)
{
    struct holder *h = user;
    for (size_t i = 0; i < n; i++)
        post(h->sim, &h->sim->queue[ENTRIES][h->set][neighbour(h, 1)][h->part][0],
             (struct letter){.value = first + i, .entry = entry[i]});
}

static void sim_ack(void *user, uint64_t upto)
{
    struct holder *h = user;
    post(h->sim, &h->sim->queue[ACK][h->set][neighbour(h, -1)][h->part][0], (struct letter){.value = upto});
}

static const struct order_ops SIM = {
    .execute = sim_execute, .answer = sim_answer, .differ = sim_differ, .send = sim_send, .ack = sim_ack};

/* What the program does as its n-th operation depends on results up to some before it, and now and then on all ranks'
 * progress. */
static int needed(const struct sim *s, int rank, int n)
{
    int open = (int)(mixed(s->seed ^ 1, (uint64_t)(rank * OPS + n)) % 3);
    return n > open ? n - open : 0;
}

static bool may_begin(const struct sim *s, int set, int rank)
{
    const struct runner *r = &s->runner[set][rank];
    if (r->begun == s->limit || r->told < needed(s, rank, r->begun))
        return false;
    for (int other = 0; r->begun % 8 == 0 && other < RANKS; other++)
        if (s->runner[set][other].told < r->begun - 2)
            return false;
    return true;
}

static void begin(struct sim *s, int set, int rank)
{
    struct runner *r = &s->runner[set][rank];
    int n = r->begun++;
    uint64_t digest = (uint64_t)(rank * OPS + n);
    for (int i = 0; i < needed(s, rank, n); i++)
        digest = mixed(digest, r->result[i]);
    int part = (int)(mixed(s->seed, digest) % PARTS);
    post(s, &s->queue[OPERATION][set][set][part][rank], (struct letter){.rank = rank, .number = n, .value = digest});
}

static void tell(struct sim *s, int set, const struct letter *l)
{
    struct runner *r = &s->runner[set][l->rank];
    r->has[l->number] = true;
    r->result[l->number] = l->value;
    if (s->is_known[l->rank][l->number])
        assert_int_equal(s->known[l->rank][l->number], l->value);
    s->is_known[l->rank][l->number] = true;
    s->known[l->rank][l->number] = l->value;
    while (r->told < OPS && r->has[r->told])
        r->told++;
}

static void take_operation(struct holder *h, const struct letter *l)
{
    struct letter *op = &h->got[l->rank][l->number];
    *op = *l;
    assert_true(order_arrived(
        &h->order, (struct order_name){.origin = (uint64_t)l->rank, .number = (uint64_t)l->number}, l->value, op));
}

static void deliver(struct sim *s, enum kind kind, int from, int to, int part, struct queue *q)
{
    struct letter l = q->letter[q->first++];
    struct holder *h = &s->holder[to][part];
    if (s->stopped[to] || h->gone[from] || l.view < s->joins)
        return;
    if (kind == OPERATION)
        take_operation(h, &l);
    else if (kind == ANSWER)
        tell(s, to, &l);
    else if (kind == ENTRIES)
        assert_true(order_entries(&h->order, l.value, &l.entry, 1));
    else
        order_acked(&h->order, l.value);
}

/* Its messages arrive up to some of each queue. */
static void stop(struct sim *s, int set)
{
    s->stopped[set] = true;
    for (int kind = 0; kind < KINDS; kind++)
        for (int to = 0; to < s->sets; to++)
            for (int part = 0; part < PARTS; part++) {
                struct queue *q = &s->queue[kind][set][to][part][0];
                q->end = q->first + rng_below(&s->rng, q->end - q->first + 1);
            }
}

static void learn(struct sim *s, struct holder *h, int set)
{
    h->gone[set] = true;
    assert_true(order_chain(&h->order, neighbour(h, -1) < 0, neighbour(h, 1) >= 0));
    (void)s;
}

static bool all_stand_still(const struct sim *s)
{
    for (int set = 0; set < s->sets; set++)
        for (int rank = 0; rank < RANKS && !s->stopped[set]; rank++)
            if (s->runner[set][rank].told < s->limit)
                return false;
    return true;
}

/* All that know of the view: what was said before is of an older one, and drops. */
static void join(struct sim *s, int set, int from)
{
    s->joins++;
    s->stopped[set] = false;
    memcpy(s->runner[set], s->runner[from], sizeof s->runner[set]);
    for (int part = 0; part < PARTS; part++) {
        struct holder *h = &s->holder[set][part], *like = &s->holder[from][part];
        h->word = like->word;
        memcpy(h->is_executed, like->is_executed, sizeof h->is_executed);
        order_fini(&h->order);
        order_init(&h->order, true, false, &SIM, h);
    }
    for (int at = 0; at < s->sets; at++)
        for (int part = 0; part < PARTS && !s->stopped[at]; part++) {
            struct holder *h = &s->holder[at][part];
            memcpy(h->gone, s->stopped, sizeof h->gone);
            assert_true(order_begin_anew(&h->order, neighbour(h, -1) < 0, neighbour(h, 1) >= 0));
        }
}

/* How many sets there are now. */
static int go_on(struct sim *s)
{
    int left = 0;
    for (int set = 0; set < s->sets; set++)
        for (int from = 0; s->stopped[set] && from < s->sets; from++)
            if (!s->stopped[from] && rng_below(&s->rng, 2)) {
                join(s, set, from);
                break;
            }
    for (int set = 0; set < s->sets; set++)
        left += !s->stopped[set];
    s->limit += PAUSE;
    return left;
}

/* One thing that can happen now; false: nothing can. */
static bool happen(struct sim *s)
{
    enum { CHOICES = 4096 };
    static struct {
        int what, a, b, c, d;
    } can[CHOICES];
    size_t n = 0;
    for (int set = 0; set < s->sets; set++)
        for (int rank = 0; rank < RANKS; rank++)
            if (!s->stopped[set] && may_begin(s, set, rank))
                can[n].what = KINDS, can[n].a = set, can[n++].b = rank;
    for (int set = 0; set < s->sets; set++)
        for (int part = 0; part < PARTS; part++)
            for (int gone = 0; gone < s->sets; gone++)
                if (!s->stopped[set] && s->stopped[gone] && !s->holder[set][part].gone[gone])
                    can[n].what = KINDS + 1, can[n].a = set, can[n].b = part, can[n++].c = gone;
    for (int kind = 0; kind < KINDS; kind++)
        for (int from = 0; from < s->sets; from++)
            for (int to = 0; to < s->sets; to++)
                for (int part = 0; part < PARTS; part++)
                    for (int rank = 0; rank < RANKS; rank++) {
                        const struct queue *q = &s->queue[kind][from][to][part][rank];
                        if (q->first < q->end)
                            can[n].what = kind, can[n].a = from, can[n].b = to, can[n].c = part, can[n++].d = rank;
                    }
    if (n == 0)
        return false;
    size_t i = rng_below(&s->rng, n);
    if (can[i].what == KINDS)
        begin(s, can[i].a, can[i].b);
    else if (can[i].what == KINDS + 1)
        learn(s, &s->holder[can[i].a][can[i].b], can[i].c);
    else
        deliver(s, (enum kind)can[i].what, can[i].a, can[i].b, can[i].c,
                &s->queue[can[i].what][can[i].a][can[i].b][can[i].c][can[i].d]);
    return true;
}

static void run_sets(struct sim *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    rng_seed(&s->rng, seed);
    s->seed = seed;
    s->sets = 2 + (int)rng_below(&s->rng, SETS - 1);
    for (int set = 0; set < s->sets; set++)
        for (int part = 0; part < PARTS; part++) {
            struct holder *h = &s->holder[set][part];
            h->sim = s;
            h->set = set;
            h->part = part;
            order_init(&h->order, set == 0, set + 1 < s->sets, &SIM, h);
        }
    int left = s->sets;
    s->limit = PAUSE;
    for (uint64_t next = rng_below(&s->rng, 1500);;) {
        if (s->limit < OPS && all_stand_still(s))
            left = go_on(s);
        if (!happen(s))
            break;
        if (left > 1 && next-- == 0) {
            int set = (int)rng_below(&s->rng, (uint64_t)s->sets);
            if (!s->stopped[set]) {
                stop(s, set);
                left--;
            }
            next = rng_below(&s->rng, rng_below(&s->rng, 2) ? 20 : 1500);
        }
    }
    const struct holder *whole = NULL;
    for (int set = 0; set < s->sets; set++) {
        for (int rank = 0; rank < RANKS && !s->stopped[set]; rank++)
            if (s->runner[set][rank].told != OPS)
                fail_msg("seed %llu: rank %d of set %d stands still at %d", (unsigned long long)seed, rank, set,
                         s->runner[set][rank].told);
        for (int part = 0; part < PARTS && !s->stopped[set]; part++)
            assert_true(!whole || whole[part].word == s->holder[set][part].word);
        if (!s->stopped[set])
            whole = s->holder[set];
        for (int part = 0; part < PARTS; part++)
            order_fini(&s->holder[set][part].order);
    }
}

static void test_order_sets_tell_the_same_whoever_is_retired(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    struct sim *s = malloc(sizeof *s);
    assert_non_null(s);
    for (int run = 0; run < 300; run++)
        run_sets(s, rng_u64(&rng));
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_leader_executes_at_once_and_answers_when_the_last_has_it),
        cmocka_unit_test(test_order_alone_answers_at_once),
        cmocka_unit_test(test_order_last_set_holds_what_has_no_entry),
        cmocka_unit_test(test_order_middle_passes_on_and_answers_when_told),
        cmocka_unit_test(test_order_next_leader_waits_for_what_was_decided),
        cmocka_unit_test(test_order_gap_is_closed),
        cmocka_unit_test(test_order_another_operation_of_the_same_name_is_told_and_has_its_place),
        cmocka_unit_test(test_order_what_comes_again_is_executed_once),
        cmocka_unit_test(test_order_who_is_behind_is_waited_for),
        cmocka_unit_test(test_order_without_memory_nothing_has_happened),
        cmocka_unit_test(test_order_begins_anew_where_nothing_is_under_way),
        cmocka_unit_test(test_order_sets_tell_the_same_whoever_is_retired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
