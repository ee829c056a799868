/* Who acts for more sets than its own (runtime/client/replica/acting.c): what it writes where, in which order, and
 * where it reads. The library, the other replicas and the views are the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/stream/mail.h"

enum { RANKS = 3, SETS = 2, SEGMENT = 4, HERE = 1 };

struct replica_self replica = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct client client;
static struct page *page;
static char said[4096]; /* what goes, in order: set, rank, what */
static unsigned acts;
static int bound;
static uint64_t names;
static uint64_t memory[1 << 17]; /* of the room, this rank's part */
static struct keel_segment *const OWN = (void *)16, *const ROOM = (void *)32, *const OTHER = (void *)48;

static void note(int native, const char *what)
{
    struct replica r = replica_of(&client.replicas, native);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%d.%d %s; ", r.set, r.rank, what);
}

static void expect_said(const char *text)
{
    assert_string_equal(said, text);
    said[0] = '\0';
}

/* ---- the library ---- */

static keel_status puts_come_to = KEEL_OK;

static keel_status put(keel_segment *s, int native, size_t offset, const void *src, size_t len)
{
    char what[40];
    uint64_t first = 0;
    memcpy(&first, src, len < 8 ? len : 8);
    snprintf(what, sizeof what, s == ROOM || offset > 1000 ? "learns %llu" : "put %llu", (unsigned long long)first);
    note(native, what);
    return puts_come_to;
}

static uint64_t reads; /* what is found in the room, but for its first time */
static int read_late;

static keel_status get(keel_segment *s, int native, size_t offset, void *dst, size_t len)
{
    (void)offset;
    memset(dst, 0, len);
    if (s != OWN && read_late-- <= 0)
        memcpy(dst, &reads, len < 8 ? len : 8);
    note(native, "get");
    return KEEL_OK;
}

static keel_status alloc(keel_group *g, const size_t *bytes, keel_redundancy r, keel_segment **out)
{
    (void)g, (void)r;
    assert_true(bytes[0] <= sizeof memory);
    *out = ROOM;
    return KEEL_OK;
}

static void *address(keel_segment *s, int native)
{
    assert_ptr_equal(s, ROOM);
    assert_int_equal(native, replica_native_of(replica.rank));
    return memory;
}

static const struct api_calls under = {.put = put, .get = get, .segment_alloc_group = alloc, .address = address};

keel_status rma_run_named(struct client *c, keel_segment *s, int rank, size_t offset, const struct rma_named *how,
                          int64_t *found)
{
    char what[60];
    (void)c, (void)s, (void)offset;
    const char *does = how->unordered ? "add" : how->kind == OP_ACC ? "sum" : "swap";
    snprintf(what, sizeof what, "%s %lld as %llu", does, (long long)how->a, (unsigned long long)how->name);
    note(rank, what);
    if (found)
        *found = 40 + replica_of(&client.replicas, rank).set;
    return KEEL_OK;
}

uint64_t rma_draw_name(struct client *c)
{
    (void)c;
    return ++names;
}

void signal_tell(struct client *c, int rank)
{
    (void)c, (void)rank;
}

static int has_left = -2; /* that rank, before any collective */

keel_status signal_await(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value,
                         struct wait *as, bool (*nobody)(const void *arg), int64_t *got)
{
    struct wait_said w = {.rank = -2};
    (void)s, (void)word, (void)how, (void)value;
    if (got && *(const int *)as->arg == has_left)
        *got = (int64_t)1 << 62;
    if (nobody && nobody(as->arg))
        return KEEL_ERR_RANK_DEAD;
    as->whom(c, as->arg, &w);
    assert_int_equal(w.whom, WAIT_FOR_WORD);
    if (w.rank < 0)
        snprintf(said + strlen(said), sizeof said - strlen(said), "any waited for; ");
    else
        note(w.rank, "waited for");
    return KEEL_OK;
}

static keel_status brings; /* what comes of the next message */

keel_status mail_bring(struct client *c, int native, uint32_t tag, const struct mail_mark *mark, const void *data,
                       size_t len)
{
    char what[80];
    keel_status status = brings;
    (void)c;
    snprintf(what, sizeof what, "letter %llu of %u knows %llu: %.*s", (unsigned long long)mark->number, tag,
             (unsigned long long)mark->deaths, (int)len, (const char *)data);
    note(native, what);
    brings = KEEL_OK;
    return status;
}

static uint64_t letters_tell; /* of that epoch */

uint64_t mail_deaths(const struct client *c)
{
    (void)c;
    return letters_tell;
}

keel_status mail_receive_brought(struct client *c, int rank, uint32_t tag, void *data, size_t max, size_t *len,
                                 int *from)
{
    (void)c, (void)tag, (void)data, (void)max, (void)len;
    snprintf(said + strlen(said), sizeof said - strlen(said), "a letter of %d; ", rank);
    *from = rank;
    return KEEL_OK;
}

keel_status mail_test_brought(struct client *c, int rank, uint32_t tag, size_t *len, int *from)
{
    (void)c, (void)rank, (void)tag, (void)len, (void)from;
    return KEEL_IN_PROGRESS;
}

/* ---- the rest of the wrapper ---- */

int acting_rank_of(int native)
{
    return native < RANKS * SETS ? replica_of(&client.replicas, native).rank : -1;
}

bool nap_for_memory(keel_status status, struct wait *w)
{
    (void)w;
    return status == KEEL_ERR_NOMEM;
}

const struct api_calls *replica_acting_calls(const struct api_calls *library)
{
    return library;
}

keel_segment *replica_elsewhere(uint64_t number, int set, int target)
{
    assert_true(set != replica.set && (number == SEGMENT || number == 0) && target < RANKS);
    return OTHER;
}

keel_segment *replica_segment(uint64_t number)
{
    assert_int_equal(number, SEGMENT);
    return OWN;
}

keel_status replica_describes(const keel_segment *segment, uint64_t number)
{
    assert_true(segment == ROOM && number == 0);
    return KEEL_OK;
}

unsigned replica_acts(void)
{
    return acts;
}

void replica_partner_died(int set)
{
    unsigned more = 1U << set & ~acts;
    acts |= more;
    if (more)
        replica_take_over(more);
}

keel_status replica_after(keel_status status)
{
    return status;
}

void replica_used(enum partner_use use, int rank, size_t bytes)
{
    (void)rank, (void)bytes;
    assert_true(use == PARTNER_PASS || use == PARTNER_SIGNAL);
}

keel_status replica_meet(enum replica_call call)
{
    if (call != CALL_finalize)
        fail_msg("one piece is enough");
    snprintf(said + strlen(said), sizeof said - strlen(said), "meets; ");
    return KEEL_OK;
}

_Noreturn void replica_stop(const char *text)
{
    fail_msg("%s", text);
    abort();
}

static int over; /* waits that have ended */

void waits_over(struct client *c, struct wait *w)
{
    (void)c, (void)w;
    over++;
}

/* ---- the test ---- */

static int naps, for_agent, since_bound;

static bool tell(void *user, const struct control *r)
{
    (void)user;
    assert_true(r->type == CONTROL_NEEDS && r->a == NEEDS_SETS);
    return ++bound > 1; /* not at once */
}

void nap_for_own_agent(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)c, (void)arg, (void)out;
}

void nap_for_process(const struct client *c, const void *native, struct wait_said *out)
{
    (void)c, (void)native, (void)out;
}

void nap(struct wait *w)
{
    if (++naps % 3 == 0)
        atomic_store(&page->frozen, 0);
    for_agent += w->whom == nap_for_own_agent;
    atomic_fetch_add(&page->epoch, 1); /* the view comes meanwhile */
    if (bound > 1 && ++since_bound > 2)
        atomic_store(&page->bound, 1);
}

static void dies(int rank, int set, uint64_t epoch)
{
    atomic_store(&page_rank(page, replica_native(&client.replicas, rank, set))->died, epoch);
    atomic_store(&page->epoch, epoch);
}

static int begin(void **state)
{
    (void)state;
    static bool is_begun;
    if (!is_begun) { /* one rank, one life */
        page = calloc(1, page_bytes(RANKS * SETS, RANKS * SETS, RANKS * SETS));
        page->nodes = page->members = page->ranks = RANKS * SETS;
        assert_true(replica_map_init(&client.replicas, RANKS, SETS));
        client.page = page;
        client.env = (struct client_env){.tell = tell};
        replica.client = &client;
        replica.below = &under;
        replica.rank = HERE;
        replica.set = 0;
        replica.size = RANKS;
        replica.sets = SETS;
        replica.partners = true;
        acts = 1;
        assert_int_equal(replica_acting_begin(), KEEL_OK);
    }
    is_begun = true;
    said[0] = '\0';
    naps = for_agent = over = 0;
    return 0;
}

static void puts_word(int rank, uint64_t value)
{
    assert_int_equal(replica_puts(SEGMENT, rank, 0, &value, sizeof value), KEEL_OK);
}

static void test_acting_writes_and_reads_in_the_own_set_while_all_live(void **state)
{
    (void)state;
    uint64_t got;
    puts_word(2, 5);
    assert_int_equal(replica_signals(SEGMENT, 2, 8, 1), KEEL_OK);
    assert_int_equal(replica_reads(SEGMENT, 2, 0, &got, sizeof got), KEEL_OK);
    expect_said("0.2 put 5; 0.2 add 1 as 1; 0.2 get; ");
    replica_forget_kept();
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, 2, NULL), KEEL_OK);
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, KEEL_ANY_RANK, NULL), KEEL_OK);
    expect_said("0.2 waited for; any waited for; ");
}

/* A death of somebody else: nothing goes there any more, who is told of something is told of it, once, and it is read
 * in the other set. */
static void test_acting_target_that_died_is_left_out_and_those_who_are_told_know_it(void **state)
{
    (void)state;
    uint64_t got;
    puts_word(0, 6); /* kept */
    expect_said("0.0 put 6; ");
    dies(2, 0, 7);
    puts_word(2, 7);
    expect_said("");
    assert_int_equal(replica_signals(SEGMENT, 0, 8, 3), KEEL_OK);
    assert_int_equal(replica_signals(SEGMENT, 0, 8, 4), KEEL_OK);
    expect_said("0.0 learns 7; 0.0 add 3 as 2; 0.0 add 4 as 3; ");
    assert_int_equal(replica_reads(SEGMENT, 2, 0, &got, sizeof got), KEEL_OK);
    expect_said("1.2 get; ");
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, 2, NULL), KEEL_OK);
    expect_said("1.2 waited for; "); /* who acts for it */
}

static int64_t swaps(int rank, int64_t to)
{
    const struct rma_named how = {.kind = OP_RMW, .what = KEEL_RMW_SWAP, .word = 8, .a = to};
    int64_t found = 0;
    assert_int_equal(replica_exchanges(SEGMENT, rank, 16, &how, &found), KEEL_OK);
    return found;
}

/* What has an order goes also to the part of the dead; what an atomic found there is not the answer: it is asked for
 * where the target lives, under the same name. */
static void test_acting_what_has_an_order_goes_to_the_dead_and_is_asked_for_among_the_living(void **state)
{
    (void)state;
    const struct rma_named sum = {.kind = OP_ACC, .what = KEEL_INT64, .a = 3};
    static const int64_t by[RMA_NAMED_MAX / 8 + 1];
    assert_int_equal(swaps(0, 5), 40);
    expect_said("0.0 swap 5 as 4; ");
    assert_int_equal(swaps(2, 6), 41);
    expect_said("0.2 swap 6 as 5; 1.2 swap 6 as 5; ");
    assert_int_equal(replica_accumulates(SEGMENT, 2, 0, &sum, by, sizeof by), KEEL_OK);
    expect_said("0.2 sum 3 as 6; 0.2 sum 3 as 7; "); /* two messages */
}

/* Until the view is here that is being prepared: somebody may act by it. */
static void test_acting_who_is_told_by_an_atomic_knows_what_others_know(void **state)
{
    (void)state;
    atomic_store(&page->frozen, 1);
    assert_int_equal(swaps(0, 7), 40);
    assert_int_equal(atomic_load(&page->frozen), 0);
    assert_int_equal(naps, 3);
    expect_said("0.0 swap 7 as 8; ");
}

/* The partner dies: what was put since the last meeting goes to its set first, then what has names, under these; also
 * to who is dead in the own set. From then on each write goes to both. */
static void test_acting_takes_over_what_is_kept_and_goes_on_in_both(void **state)
{
    (void)state;
    dies(HERE, 1, 9);
    replica_look_for_deaths();
    expect_said("1.0 put 6; 1.2 put 7; 1.0 learns 9; 1.0 add 3 as 2; 1.0 add 4 as 3; 1.0 swap 5 as 4; 1.2 swap 6 as 5; "
                "1.2 sum 3 as 6; 1.2 sum 3 as 7; 1.0 swap 7 as 8; ");
    assert_int_equal(acts, 3);
    replica_look_for_deaths();
    expect_said("");
    replica_forget_kept();
    puts_word(0, 8);
    puts_word(2, 9);
    assert_int_equal(replica_signals(SEGMENT, 2, 8, 1), KEEL_OK);
    expect_said("0.0 put 8; 1.0 put 8; 1.2 put 9; 1.2 learns 9; 1.2 add 1 as 9; ");
    assert_int_equal(swaps(2, 8), 41);
    expect_said("0.2 swap 8 as 10; 1.2 swap 8 as 10; "); /* in the order of sets, and as the living one says */
}

static void sends(int rank, const char *text)
{
    assert_int_equal(act_message_send(replica_native_of(rank), 7, text, strlen(text)), KEEL_OK);
}

/* It acts for both sets of its rank; rank 2 lives in the other one alone. Each rank's messages have numbers, and who is
 * to get one hears what deaths are known. */
static void test_acting_messages_have_numbers_and_go_where_their_receiver_lives(void **state)
{
    (void)state;
    replica_forget_kept();
    sends(0, "a");
    sends(2, "b");
    brings = KEEL_ERR_NOMEM; /* there is no memory for it yet */
    sends(0, "c");
    expect_said("0.0 letter 1 of 7 knows 9: a; 1.0 letter 1 of 7 knows 9: a; 1.2 letter 1 of 7 knows 9: b; "
                "0.0 letter 2 of 7 knows 9: c; 0.0 letter 2 of 7 knows 9: c; 1.0 letter 2 of 7 knows 9: c; ");
    replica_take_over(2); /* once more, under the same numbers */
    expect_said("1.0 letter 1 of 7 knows 9: a; 1.2 letter 1 of 7 knows 9: b; 1.0 letter 2 of 7 knows 9: c; ");
    replica_forget_kept();
}

/* One whose receiver has come to its end is wanted by nobody, and its sender waits for no view that says it died. */
static void test_acting_message_to_who_has_left_is_nobodys(void **state)
{
    (void)state;
    int to = replica_native_of(0);
    atomic_store(&page_rank(page, to)->done, 1);
    brings = KEEL_ERR_RANK_DEAD;
    sends(0, "d");
    expect_said("0.0 letter 3 of 7 knows 9: d; 1.0 letter 3 of 7 knows 9: d; ");
    assert_int_equal(naps, 0);
    atomic_store(&page_rank(page, to)->done, 0);
    replica_forget_kept();
}

static void test_acting_who_gets_a_message_knows_of_the_deaths_that_its_sender_knew(void **state)
{
    (void)state;
    int from;
    letters_tell = 11;
    assert_int_equal(act_message_test(replica_native_of(2), 7, NULL, &from), KEEL_IN_PROGRESS);
    assert_int_equal(naps, 0);
    assert_int_equal(act_message_receive(replica_native_of(2), 7, NULL, 0, NULL, &from), KEEL_OK);
    expect_said("a letter of 2; ");
    assert_int_equal(naps, 2);
    assert_int_equal(atomic_load(&page->epoch), 11);
    letters_tell = 0;
    assert_int_equal(act_message_receive(KEEL_ANY_RANK, 7, NULL, 0, NULL, &from), KEEL_OK);
    expect_said("a letter of -1; ");
    atomic_store(&page->epoch, 9);
    replica_look_for_deaths();
}

/* Somebody who knew of a later death has told it something. */
static void test_acting_who_waited_goes_on_when_its_view_is_as_late(void **state)
{
    (void)state;
    struct passing p = {HERE, RANKS, 0};
    size_t block = (1 << 20) / 2 / RANKS;
    p.room = block > 32776 ? 32776 : block / 16 * 16 + 8;
    memory[passing_bytes(&p) / 8 + 1 + 0] = 12; /* rank 0 says */
    assert_int_equal(atomic_load(&page->epoch), 9);
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, 0, NULL), KEEL_OK);
    expect_said("0.0 waited for; ");
    assert_int_equal(atomic_load(&page->epoch), 12);
    assert_int_equal(naps, 3);
    assert_int_equal(for_agent, 0);
    assert_true(over > 0);
}

/* It is said until it is taken, once; and what needs them waits for the view that says so. */
static void test_acting_what_needs_all_members_waits_until_a_view_says_so(void **state)
{
    (void)state;
    replica_binds();
    assert_true(atomic_load(&page->bound));
    assert_int_equal(bound, 2);
    assert_int_equal(naps, 4);
    assert_int_equal(for_agent, 1); /* until that has taken it */
    replica_binds();
    assert_int_equal(bound, 2);
    assert_int_equal(naps, 4);
    assert_true(over > 0);
}

static void takes_rank(void *ranks, int origin, size_t at, const void *bytes, size_t len)
{
    (void)at, (void)bytes, (void)len;
    *(unsigned *)ranks |= 1U << origin;
}

/* Rank 0 has left, from which this one would have had its block: that is read where it lies, when it is known. */
static void test_acting_collective_goes_on_without_who_has_left(void **state)
{
    (void)state;
    unsigned ranks = 0;
    has_left = 0;
    reads = UINT64_C(1) << 62;
    read_late = 2;
    assert_int_equal(replica_passes(CALL_group_barrier, NULL, 0, takes_rank, &ranks), KEEL_OK);
    assert_int_equal(ranks, 1U << 1 | 1U << 2);
    assert_int_equal(naps, 2);
    ranks = 0;
    reads = 2; /* it has not, and has come to this one: it is only slow to pass on */
    assert_int_equal(replica_passes(CALL_group_barrier, NULL, 0, takes_rank, &ranks), KEEL_OK);
    assert_int_equal(ranks, 1U << 0 | 1U << 1 | 1U << 2);
    has_left = -2;
}

static void test_acting_word_of_who_has_left_is_waited_for_no_more(void **state)
{
    (void)state;
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, 0, NULL), KEEL_OK);
    atomic_store(&page_rank(page, replica_native(&client.replicas, 0, 1))->done, 1);
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, 0, NULL), KEEL_ERR_RANK_DEAD);
    assert_int_equal(replica_waits(OWN, 0, KEEL_GE, 1, KEEL_ANY_RANK, NULL), KEEL_OK);
}

/* Its node has died since, and its memory with it: no view says that it has died. */
static void test_acting_part_of_who_has_left_is_nobodys_when_it_is_lost(void **state)
{
    (void)state;
    atomic_store(&page_rank(page, replica_native(&client.replicas, 0, 0))->done, 1);
    puts_word(0, 8);
    assert_true(replica_lives(0, 0));
    puts_come_to = KEEL_ERR_DATA_LOST;
    puts_word(0, 9);
    puts_come_to = KEEL_OK;
    assert_int_equal(naps, 0);
    assert_false(replica_lives(0, 0));
}

/* Those to whom it would pass on the next collective, in all sets before it has gone. */
static void test_acting_who_leaves_says_so(void **state)
{
    (void)state;
    names = 0;
    assert_int_equal(replica_leaves(), KEEL_OK);
    assert_non_null(strstr(said, "2 add 4611686018427387904 as 1; "));
    assert_non_null(strstr(said, "0 add 4611686018427387904 as 2; "));
    assert_string_equal(said + strlen(said) - strlen("meets; "), "meets; ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(test_acting_writes_and_reads_in_the_own_set_while_all_live),
        TEST(test_acting_target_that_died_is_left_out_and_those_who_are_told_know_it),
        TEST(test_acting_what_has_an_order_goes_to_the_dead_and_is_asked_for_among_the_living),
        TEST(test_acting_who_is_told_by_an_atomic_knows_what_others_know),
        TEST(test_acting_takes_over_what_is_kept_and_goes_on_in_both),
        TEST(test_acting_messages_have_numbers_and_go_where_their_receiver_lives),
        TEST(test_acting_message_to_who_has_left_is_nobodys),
        TEST(test_acting_who_gets_a_message_knows_of_the_deaths_that_its_sender_knew),
        TEST(test_acting_who_waited_goes_on_when_its_view_is_as_late),
        TEST(test_acting_what_needs_all_members_waits_until_a_view_says_so),
        TEST(test_acting_collective_goes_on_without_who_has_left),
        TEST(test_acting_word_of_who_has_left_is_waited_for_no_more),
        TEST(test_acting_who_leaves_says_so),
        TEST(test_acting_part_of_who_has_left_is_nobodys_when_it_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
