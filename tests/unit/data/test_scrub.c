/* The scrubber: what it finds and mends of copies that changed by themselves, and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/agent/ranks.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/scrub.h"
#include "runtime/agent/segments.h"
#include "runtime/base/clock.h"
#include "runtime/wire/marks.h"
#include "world_steps.h"

enum { FAST = 1 << 30, PASS_TURNS = 1100, BLOCKS = SEG_BYTES / SCRUB_BLOCK };

static void all_scrub(uint64_t rate)
{
    for (int i = 0; i < w.nodes; i++)
        w.node[i].agent.scrub.rate = rate;
}

static uint8_t was(size_t at, int slot)
{
    return at < 1000 ? (uint8_t)(at * 7 + (size_t)slot) : 0;
}

static int scrub_setup(void **state)
{
    setup(state);
    for (int i = 0; i < w.nodes; i++)
        for (int k = 0; k < w.nodes; k++)
            for (uint32_t seg = SEG_SHADOW; seg <= SEG_TRIPLE; seg++)
                if (store_copy(&w.node[i].agent.store, seg, k))
                    for (size_t at = 0; at < 1000; at++)
                        bytes_at(i, seg, k)[at] = was(at, k);
    all_scrub(FAST);
    return 0;
}

static void turns(int n)
{
    for (int i = 0; i < n; i++)
        world_turn();
}

/* Two passes and what comes of them, views included. */
static void two_passes(void)
{
    for (int i = 0; i < 3; i++) {
        turns(PASS_TURNS);
        world_restore();
    }
}

/* Turns until a view is asked for; which copyset it is about. */
static int await_suspicion(void)
{
    for (int i = 0; i < 4 * PASS_TURNS && !w.submissions; i++)
        world_turn();
    assert_int_equal(w.submissions, 1);
    assert_int_equal(w.submitted[0].type, VIEW_SUSPECT);
    return (int)w.submitted[0].a;
}

/* The view that was asked for, committed and settled, and nothing done since. */
static void commit_suspicion(void)
{
    struct view_event e = w.submitted[0];
    w.submissions = 0;
    world_prepare(&e, 1);
    for (int i = 0; i < 20; i++)
        world_turn();
    for (int i = 0; i < w.nodes; i++)
        world_commit(i, &e, 1);
    for (int i = 0; i < w.nodes; i++)
        world_settle(i);
}

static void await_state(int node, enum scrub_state state)
{
    for (int i = 0; i < 200 && w.node[node].agent.scrub.state != state; i++)
        world_turn();
    assert_int_equal(w.node[node].agent.scrub.state, state);
}

static int times_told(void)
{
    int n = 0;
    for (int i = 0; i < w.nodes; i++)
        for (const char *at = w.node[i].said; (at = strstr(at, "scrubbed ")); at++)
            n++;
    return n;
}

static uint64_t count(enum counter c)
{
    uint64_t n = 0;
    for (int i = 0; i < w.nodes; i++)
        n += w.node[i].agent.counts.count[c];
    return n;
}

static bool nobody_said(void)
{
    return times_told() == 0 && count(COUNTER_scrub_mismatches) == 0 && w.submissions == 0;
}

static void test_scrub_copies_at_rest_are_left_alone(void **state)
{
    (void)state;
    two_passes();
    assert_true(nobody_said());
    assert_true(copies_are_equal());
    assert_int_equal(w.epoch, 0);
    /* of each of four slots two copies and three, and three of the runtime's own */
    assert_true(count(COUNTER_scrubbed_bytes) >= 2 * (uint64_t)(4 * 5) * SEG_BYTES);
}

static void test_scrub_every_copy_is_mended(void **state)
{
    (void)state;
    static const size_t at[] = {
        0, SCRUB_BLOCK - 1, SCRUB_BLOCK, 3 * SCRUB_BLOCK + 77, 5 * SCRUB_BLOCK + 1, SEG_BYTES - 1};
    int told = 0;
    two_passes();
    for (uint32_t seg = SEG_SHADOW; seg <= SEG_TRIPLE; seg++)
        for (int copy = 0; copy < (seg == SEG_SHADOW ? 2 : 3); copy++)
            for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
                char where[100];
                bytes_at(1 + copy, seg, 1)[at[i]] ^= 0x10;
                (void)await_suspicion();
                world_restore();
                assert_true(copies_are_equal());
                assert_int_equal(bytes_at(1, seg, 1)[at[i]], was(at[i], 1));
                assert_true(is_direct(seg, 1));
                assert_int_equal(times_told(), ++told);
                snprintf(where, sizeof where, "\"segment\":%u,\"slot\":1,\"slot_offset\":%zu,\"rank\":1,\"offset\":%zu",
                         seg, at[i], at[i]);
                if (!strstr(w.node[1].found, where))
                    fail_msg("not %s: %s", where, w.node[1].found);
                snprintf(where, sizeof where, "\"bytes\":1,\"node\":%d,\"mended\":\"yes\"", 1 + copy);
                if (!strstr(w.node[1].found, where))
                    fail_msg("not %s: %s", where, w.node[1].found);
            }
    assert_int_equal(count(COUNTER_scrub_mended), told);
    two_passes();
    assert_int_equal(times_told(), told);
}

static void test_scrub_two_of_three_copies_are_mended(void **state)
{
    (void)state;
    for (int right = 0; right < 3; right++) {
        two_passes();
        for (int copy = 0; copy < 3; copy++)
            if (copy != right)
                bytes_at(1 + copy, SEG_TRIPLE, 1)[100 * copy + 5] ^= 1;
        (void)await_suspicion();
        world_restore();
        assert_true(copies_are_equal());
        for (size_t at = 0; at < 300; at++)
            assert_int_equal(bytes_at(1, SEG_TRIPLE, 1)[at], was(at, 1));
        assert_int_equal(times_told(), 2 * (right + 1));
    }
}

/* Also before a sum is kept: two agree. */
static void test_scrub_three_copies_vote(void **state)
{
    (void)state;
    bytes_at(1, SEG_TRIPLE, 1)[9] ^= 1;
    two_passes();
    assert_int_equal(times_told(), 1);
    assert_true(copies_are_equal());
    assert_int_equal(bytes_at(1, SEG_TRIPLE, 1)[9], 9 * 7 + 1);
}

static void test_scrub_what_nobody_can_decide_is_told_once(void **state)
{
    (void)state;
    two_passes();
    bytes_at(1, SEG_SHADOW, 1)[5] = 1;
    bytes_at(2, SEG_SHADOW, 1)[6] = 2;
    bytes_at(3, SEG_SHADOW, 2)[7] = 3; /* and another one beside it, which can be */
    two_passes();
    two_passes();
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[5], 1);
    assert_int_equal(bytes_at(2, SEG_SHADOW, 1)[6], 2);
    assert_int_equal(bytes_at(2, SEG_SHADOW, 1)[5], 5 * 7 + 1);
    assert_int_equal(bytes_at(3, SEG_SHADOW, 2)[7], 7 * 7 + 2);
    assert_true(is_direct(SEG_SHADOW, 1));
    assert_int_equal(count(COUNTER_scrub_mismatches), 2);
    assert_int_equal(count(COUNTER_scrub_mended), 1);
    assert_int_equal(times_told(), 2);
    bytes_at(2, SEG_SHADOW, 1)[6] = 4; /* another case */
    two_passes();
    assert_int_equal(times_told(), 3);
}

static void test_scrub_unreplicated_parts_are_not_read(void **state)
{
    (void)state;
    two_passes();
    bytes_at(0, SEG_NONE, 0)[0] ^= 1;
    two_passes();
    assert_true(nobody_said());
}

/* ---- writes ---- */

/* The writer stands still between two copies. */
static void test_scrub_put_that_is_in_one_copy_is_left_alone(void **state)
{
    (void)state;
    for (int first = 1; first <= 2; first++) {
        two_passes();
        assert_int_equal(rank_put(&w.rank[3], first, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK);
        two_passes();
        assert_int_equal(word_at(first, SEG_SHADOW, 1, 800), 77);
        assert_int_not_equal(word_at(3 - first, SEG_SHADOW, 1, 800), 77);
        assert_int_equal(rank_put(&w.rank[3], 3 - first, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK);
        two_passes();
        assert_true(nobody_said());
        for (int node = 1; node <= 2; node++)
            assert_int_equal(rank_put(&w.rank[3], node, SEG_SHADOW, 1, 800, 78, 5), KEEL_OK);
    }
}

/* Its notes stay where they are; later they say nothing of the block any more. */
static void test_scrub_flip_behind_a_complete_put_is_mended(void **state)
{
    (void)state;
    for (int node = 1; node <= 2; node++)
        assert_int_equal(rank_put(&w.rank[3], node, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK);
    two_passes();
    bytes_at(2, SEG_SHADOW, 1)[800] ^= 4;
    two_passes();
    assert_int_equal(times_told(), 1);
    assert_int_equal(word_at(2, SEG_SHADOW, 1, 800), 77);
}

/* A put comes to the primary while the view is made that is to find out. */
static void test_scrub_put_before_the_view_is_not_taken_back(void **state)
{
    (void)state;
    two_passes();
    bytes_at(2, SEG_SHADOW, 1)[4000] ^= 1;
    (void)await_suspicion();
    assert_int_equal(rank_put(&w.rank[3], 1, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK);
    world_restore();
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 800), 77);
    assert_int_equal(times_told(), 0);
    assert_true(is_direct(SEG_SHADOW, 1));
    assert_int_equal(rank_put(&w.rank[3], 1, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK); /* begun anew */
    assert_int_equal(rank_put(&w.rank[3], 2, SEG_SHADOW, 1, 800, 77, 5), KEEL_OK);
    two_passes();
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 800), 77);
    assert_int_equal(word_at(2, SEG_SHADOW, 1, 800), 77);
}

/* An announced remote write whose bytes are here already. */
static void test_scrub_remote_write_under_way_is_left_alone(void **state)
{
    (void)state;
    two_passes();
    struct wire intent = rank_wire(&w.rank[3], WIRE_INTENT, SEG_SHADOW, 1, 0);
    intent.raw.count = SCRUB_BLOCK;
    intent.raw.note = 3;
    intent.raw.identity = 9;
    rank_send(&w.rank[3], 1, intent, NULL);
    turns(10);
    memset(bytes_at(1, SEG_SHADOW, 1), 0x33, 1000);
    two_passes();
    assert_true(nobody_said());
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[0], 0x33);
}

static void test_scrub_plain_store_under_way_is_left_alone(void **state)
{
    (void)state;
    static struct intent_page page;
    world_process(&w.node[1].agent, life_of(1, 0), &page);
    two_passes();
    page.entry[5] = (struct intent){.active = 1, .seg = SEG_SHADOW, .slot = 1, .offset = 100, .len = 1000};
    memset(bytes_at(1, SEG_SHADOW, 1) + 100, 0xee, 500);
    two_passes();
    assert_true(nobody_said());
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[100], 0xee);
}

static _Atomic uint64_t *holders(int node)
{
    const struct store_copy *c = store_copy(&w.node[node].agent.store, SEG_SHADOW, 1);
    return holders_of(c->base, c->bytes);
}

static _Atomic uint64_t *unseen(int node)
{
    const struct store_copy *c = store_copy(&w.node[node].agent.store, SEG_SHADOW, 1);
    return unseen_of(c->base, c->bytes);
}

/* By the program, into its own part: in this copy only until it brings it to the other. */
static void test_scrub_what_the_program_stored_stays(void **state)
{
    (void)state;
    for (int by = 0; by < 2; by++) {
        two_passes();
        if (by)
            unseen_add(unseen(1), 0);
        else
            (void)holders_add(&holders(1)[0], 0);
        memset(bytes_at(1, SEG_SHADOW, 1) + 100, 0xee, 500);
        two_passes();
        assert_true(nobody_said());
        assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[100], 0xee);
        memset(bytes_at(2, SEG_SHADOW, 1) + 100, 0xee, 500);
        holders_remove(by ? unseen(1) : &holders(1)[0], 0);
        two_passes();
        assert_true(nobody_said());
        memset(bytes_at(1, SEG_SHADOW, 1) + 100, 0, 500);
        memset(bytes_at(2, SEG_SHADOW, 1) + 100, 0, 500);
    }
}

/* Nobody stores into a shadow: there it is found whoever may store into the primary's copy. */
static void test_scrub_shadow_of_a_part_with_plain_stores_is_mended(void **state)
{
    (void)state;
    two_passes();
    unseen_add(unseen(1), 0);
    (void)holders_add(&holders(1)[0], 3);
    bytes_at(2, SEG_SHADOW, 1)[100] ^= 1;
    two_passes();
    assert_int_equal(times_told(), 1);
    assert_int_equal(bytes_at(2, SEG_SHADOW, 1)[100], bytes_at(1, SEG_SHADOW, 1)[100]);
}

/* While bytes are fetched the program stores into its part: into another word, and into the one that is wrong. */
static void test_scrub_store_during_a_mend_stays(void **state)
{
    (void)state;
    two_passes();
    bytes_at(1, SEG_SHADOW, 1)[100] ^= 1;
    bytes_at(1, SEG_SHADOW, 1)[160] ^= 1;
    (void)await_suspicion();
    commit_suspicion();
    await_state(1, SCRUB_FETCH);
    (void)holders_add(&holders(1)[0], 0);
    memset(bytes_at(1, SEG_SHADOW, 1) + 64, 0xaa, 8);
    memset(bytes_at(1, SEG_SHADOW, 1) + 160, 0xbb, 8);
    world_restore();
    turns(100);
    world_restore();
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[100], was(100, 1));
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[64], 0xaa);
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[160], 0xbb);
    assert_true(is_direct(SEG_SHADOW, 1));
}

/* What goes through the primary waits meanwhile, and nothing of it is lost. */
static void test_scrub_accumulates_wait_for_the_verdict(void **state)
{
    (void)state;
    two_passes();
    int64_t before = word_at(1, SEG_SHADOW, 1, 800);
    bytes_at(1, SEG_SHADOW, 1)[100] ^= 1;
    (void)await_suspicion();
    commit_suspicion();
    assert_true(repair_holds(&w.node[1].agent, copyset_of(1, SEG_SHADOW)));
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_SHADOW, 1, 800);
    add.raw.a = 5;
    add.raw.identity = 1;
    int replies = w.rank[3].replies;
    rank_send(&w.rank[3], 1, add, NULL);
    await_state(1, SCRUB_FETCH);
    assert_int_equal(w.rank[3].replies, replies);
    turns(100);
    world_restore();
    turns(100);
    assert_int_equal(w.rank[3].replies, replies + 1);
    assert_int_equal(w.rank[3].reply.raw.status, KEEL_OK);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 800), before + 5);
    assert_int_equal(word_at(2, SEG_SHADOW, 1, 800), before + 5);
    assert_int_equal(bytes_at(1, SEG_SHADOW, 1)[100], was(100, 1));
}

/* ---- deaths, silence, memory ---- */

/* At each step another node dies, or the one whose copy is fetched, or nobody answers. */
static void test_scrub_deaths_on_the_way_end_it(void **state)
{
    static const enum scrub_state at[] = {SCRUB_LOOK, SCRUB_VIEW, SCRUB_HELD, SCRUB_JUDGE, SCRUB_FETCH, SCRUB_SPREAD};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        for (int victim = 1; victim <= 2; victim++)
            for (int wrong = 1; wrong <= 2; wrong++) {
                teardown(state);
                scrub_setup(state);
                two_passes();
                bytes_at(wrong, SEG_TRIPLE, 1)[100] ^= 1;
                if (at[i] > SCRUB_LOOK)
                    (void)await_suspicion();
                if (at[i] > SCRUB_VIEW)
                    commit_suspicion();
                for (int k = 0; k < 3000 && w.node[1].agent.scrub.state != at[i]; k++)
                    world_turn();
                world_kill_node(victim);
                two_passes();
                two_passes();
                assert_true(copies_are_equal());
                assert_true(is_direct(SEG_TRIPLE, 1));
                int node = copyset_at(victim == 0, SEG_TRIPLE, 1)->copy[0].node;
                if (victim != 1 || wrong != 2) /* else the wrong one may be what is left as the first */
                    assert_int_equal(bytes_at(node, SEG_TRIPLE, 1)[100], was(100, 1));
                for (int k = 0; k < w.nodes; k++)
                    assert_true(w.node[k].still || w.node[k].agent.scrub.state <= SCRUB_LOOK);
            }
}

/* Somebody stands still, and is not declared dead: nothing waits for it for long. */
static void test_scrub_silence_ends_it(void **state)
{
    (void)state;
    two_passes();
    bytes_at(2, SEG_SHADOW, 1)[100] ^= 1;
    (void)await_suspicion();
    commit_suspicion();
    for (int k = 0; k < 100 && w.node[1].agent.scrub.state != SCRUB_JUDGE; k++)
        world_turn();
    w.node[2].still = true;
    turns(2200);
    assert_false(repair_holds(&w.node[1].agent, copyset_of(1, SEG_SHADOW)));
    w.node[2].still = false;
    two_passes();
    two_passes();
    assert_true(copies_are_equal());
    assert_true(is_direct(SEG_SHADOW, 1));
    assert_int_equal(count(COUNTER_scrub_mended), 1);
}

static void test_scrub_view_that_does_not_come_is_not_waited_for(void **state)
{
    (void)state;
    two_passes();
    bytes_at(2, SEG_SHADOW, 1)[100] ^= 1;
    (void)await_suspicion();
    struct view_event late = w.submitted[0];
    w.submissions = 0;
    turns(12000);
    assert_true(w.submissions >= 1); /* again, in another pass */
    w.submissions = 0;
    w.node[1].agent.scrub.until = 0;
    turns(2);
    world_change(&late, 1); /* of nobody any more */
    turns(100);
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 1));
    two_passes();
    assert_true(copies_are_equal());
}

static void test_scrub_without_memory_it_comes_again(void **state)
{
    (void)state;
    two_passes();
    bytes_at(1, SEG_SHADOW, 1)[100] ^= 1;
    (void)await_suspicion();
    memory_fail_large(1, 2 * SCRUB_BLOCK);
    world_restore();
    assert_true(memory_failed());
    two_passes();
    assert_true(is_direct(SEG_SHADOW, 1));
    assert_int_equal(times_told(), 1);
    assert_true(copies_are_equal());
}

static void test_scrub_segment_that_is_freed_is_forgotten(void **state)
{
    (void)state;
    two_passes();
    bytes_at(2, SEG_SHADOW, 1)[100] ^= 1;
    (void)await_suspicion();
    for (int i = 0; i < w.nodes; i++)
        store_free(&w.node[i].agent.store, SEG_SHADOW);
    struct view_event e = w.submitted[0];
    w.submissions = 0;
    world_change(&e, 1);
    world_restore();
    turns(2 * PASS_TURNS);
    assert_int_equal(times_told(), 0);
    for (const struct scrub_part *p = w.node[1].agent.scrub.parts; p; p = p->next)
        assert_int_not_equal(p->seg, SEG_SHADOW);
    bytes_at(2, SEG_TRIPLE, 1)[100] ^= 1;
    two_passes();
    assert_int_equal(times_told(), 1);
}

static void test_scrub_reads_no_faster_than_its_rate(void **state)
{
    (void)state;
    all_scrub(4 << 20);
    turns(5000);
    uint64_t read = count(COUNTER_scrubbed_bytes), most = 4 * 5 * (uint64_t)(4 << 20);
    assert_true(read <= most + most / 10);
    assert_true(read >= most / 2);
    all_scrub(0);
    turns(1000);
    assert_true(count(COUNTER_scrubbed_bytes) <= read + 8 * SCRUB_BLOCKS_MAX * SCRUB_BLOCK);
}

static void test_scrub_malformed_questions_do_no_harm(void **state)
{
    (void)state;
    static const struct msg_scrub bad[] = {
        {.at = {.seg = 99, .slot = 1}, .bytes = 8, .close = true},
        {.at = {.seg = SEG_SHADOW, .slot = 60000}, .bytes = 8},
        {.at = {.seg = SEG_SHADOW, .slot = 1, .offset = SEG_BYTES}, .bytes = 1, .close = true},
        {.at = {.seg = SEG_SHADOW, .slot = 1, .offset = UINT64_MAX}, .bytes = 2},
        {.at = {.seg = SEG_SHADOW, .slot = 1}, .bytes = UINT32_MAX},
        {.at = {.seg = SEG_SHADOW, .slot = 1}, .bytes = SCRUB_BLOCK + 1, .close = true},
        {.at = {.seg = SEG_SHADOW, .slot = 1}, .bytes = 0, .close = true},
        {.at = {.seg = SEG_NONE, .slot = 0}, .bytes = 8},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wire m;
        msg_scrub_encode(&bad[i], &m);
        agent_tell(&w.node[1].agent, 2, &m, NULL);
    }
    struct wire answer;
    msg_scrubbed_encode(&(struct msg_scrubbed){.len = 8, .question = 12345}, &answer);
    agent_tell(&w.node[2].agent, 1, &answer, "1234567");
    turns(100);
    two_passes();
    assert_true(nobody_said());
}

/* ---- the verdict ---- */

static enum scrub_verdict judge(const char *sums, uint64_t kept, unsigned *wrong)
{
    struct scrub_word word[COPIES_MAX];
    int n = (int)strlen(sums);
    for (int i = 0; i < n; i++)
        word[i] = (struct scrub_word){.sum = (uint64_t)sums[i], .noted_ns = UINT64_MAX};
    return scrub_judge(word, n, &(struct scrub_kept){.any = kept != 0, .sum = kept}, wrong);
}

static void test_scrub_verdicts(void **state)
{
    (void)state;
    static const struct {
        const char *sums;
        char kept;
        enum scrub_verdict verdict;
        unsigned wrong;
    } c[] = {{"aa", 0, SCRUB_EQUAL, 0},     {"aa", 'b', SCRUB_EQUAL, 0},  {"ab", 0, SCRUB_UNKNOWN, 3},
             {"ab", 'a', SCRUB_WRONG, 2},   {"ab", 'b', SCRUB_WRONG, 1},  {"ab", 'c', SCRUB_UNKNOWN, 3},
             {"aab", 0, SCRUB_WRONG, 4},    {"aab", 'b', SCRUB_WRONG, 3}, {"baa", 0, SCRUB_WRONG, 1},
             {"abc", 0, SCRUB_UNKNOWN, 7},  {"abc", 'b', SCRUB_WRONG, 5}, {"aaa", 'b', SCRUB_EQUAL, 0},
             {"abc", 'd', SCRUB_UNKNOWN, 7}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        unsigned wrong;
        assert_int_equal(judge(c[i].sums, (uint64_t)c[i].kept, &wrong), c[i].verdict);
        assert_int_equal(c[i].verdict == SCRUB_EQUAL ? 0 : wrong, c[i].wrong);
    }
}

/* A note counts unless all copies had one sum well after it. */
static void test_scrub_age_of_notes(void **state)
{
    (void)state;
    const uint64_t s = KEEL_NS_PER_S;
    struct scrub_word word[2] = {{.sum = 1, .noted_ns = 10 * s}, {.sum = 2, .noted_ns = UINT64_MAX}};
    unsigned wrong;
    struct scrub_kept kept = {.any = true, .sum = 1, .age_ns = 9 * s};
    assert_int_equal(scrub_judge(word, 2, &kept, &wrong), SCRUB_WRONG);
    kept.age_ns = 10 * s;
    assert_int_equal(scrub_judge(word, 2, &kept, &wrong), SCRUB_BUSY);
    kept = (struct scrub_kept){0};
    assert_int_equal(scrub_judge(word, 2, &kept, &wrong), SCRUB_BUSY);

    struct scrub_part *all = NULL, *p = scrub_part(&all, 7, 2, 3);
    assert_ptr_equal(p, scrub_part(&all, 7, 2, 3));
    assert_false(scrub_kept_of(p, 1, 100 * s, 0).any);
    scrub_keep(p, 1, 42, 100 * s);
    assert_int_equal(scrub_kept_of(p, 1, 103 * s, 0).sum, 42);
    assert_int_equal(scrub_kept_of(p, 1, 100 * s, 7).age_ns, 7);
    assert_in_range(scrub_kept_of(p, 1, 103 * s, 7).age_ns, 3 * s + 7, 3 * s + s / 100);
    assert_false(scrub_kept_of(p, 0, 103 * s, 0).any);
    assert_false(scrub_kept_of(NULL, 0, 103 * s, 0).any);
    p->pass = 4;
    scrub_forget(&all, 4);
    assert_non_null(all);
    scrub_forget(&all, 5);
    assert_null(all);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scrub_setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_scrub_copies_at_rest_are_left_alone),
        TEST(test_scrub_every_copy_is_mended),
        TEST(test_scrub_two_of_three_copies_are_mended),
        TEST(test_scrub_three_copies_vote),
        TEST(test_scrub_what_nobody_can_decide_is_told_once),
        TEST(test_scrub_unreplicated_parts_are_not_read),
        TEST(test_scrub_put_that_is_in_one_copy_is_left_alone),
        TEST(test_scrub_flip_behind_a_complete_put_is_mended),
        TEST(test_scrub_put_before_the_view_is_not_taken_back),
        TEST(test_scrub_remote_write_under_way_is_left_alone),
        TEST(test_scrub_plain_store_under_way_is_left_alone),
        TEST(test_scrub_what_the_program_stored_stays),
        TEST(test_scrub_shadow_of_a_part_with_plain_stores_is_mended),
        TEST(test_scrub_store_during_a_mend_stays),
        TEST(test_scrub_accumulates_wait_for_the_verdict),
        TEST(test_scrub_deaths_on_the_way_end_it),
        TEST(test_scrub_silence_ends_it),
        TEST(test_scrub_view_that_does_not_come_is_not_waited_for),
        TEST(test_scrub_without_memory_it_comes_again),
        TEST(test_scrub_segment_that_is_freed_is_forgotten),
        TEST(test_scrub_reads_no_faster_than_its_rate),
        TEST(test_scrub_malformed_questions_do_no_harm),
        cmocka_unit_test(test_scrub_verdicts),
        cmocka_unit_test(test_scrub_age_of_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
