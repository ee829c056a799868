/* The dialogue between keelrun and an agent over connections that break: each frame once, in order. */
#include "pm/wire/dialogue.h"
#include "pm/wire/message.h"

#include "runtime/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIRE_MAX = 4096, BODY_MAX = 2048 };

/* What one end has sent and the other has not read. */
struct wire {
    struct frame {
        uint8_t type;
        size_t len;
        uint8_t body[BODY_MAX];
    } frames[WIRE_MAX];
    int first, count;
};

struct end {
    struct dialogue dialogue;
    struct wire out;
    uint32_t next;     /* the number that it says next */
    uint32_t expected; /* the one that it is to hear */
};

static void put(void *user, uint8_t type, const void *body, size_t len)
{
    struct wire *w = user;
    assert_true(w->count < WIRE_MAX && len <= BODY_MAX);
    struct frame *f = &w->frames[(w->first + w->count++) % WIRE_MAX];
    f->type = type;
    f->len = len;
    if (len)
        memcpy(f->body, body, len);
}

static void say(struct end *e, size_t len)
{
    uint8_t body[BODY_MAX] = {0};
    put_u32(body, e->next++);
    dialogue_send(&e->dialogue, MSG_OUTPUT, body, len < 4 ? 4 : len);
}

/* The oldest frame that `from` has sent arrives. */
static void deliver(struct end *from, struct end *to)
{
    if (from->out.count == 0)
        return;
    const struct frame *f = &from->out.frames[from->out.first];
    from->out.first = (from->out.first + 1) % WIRE_MAX;
    from->out.count--;
    if (!dialogue_receive(&to->dialogue, f->type, f->body, f->len))
        return;
    assert_int_equal(f->type, MSG_OUTPUT);
    assert_int_equal(get_u32(f->body), to->expected);
    to->expected++;
}

/* What is on the way is lost; a new connection, whose ends tell each other what they have. */
static void break_and_resume(struct end *a, struct end *b)
{
    dialogue_down(&a->dialogue);
    dialogue_down(&b->dialogue);
    a->out.count = b->out.count = 0;
    say(a, 5); /* meanwhile */
    say(b, 700);
    assert_int_equal(a->out.count + b->out.count, 0);
    assert_true(dialogue_up(&b->dialogue, a->dialogue.received));
    assert_true(dialogue_up(&a->dialogue, b->dialogue.received));
}

static struct end *new_end(void)
{
    struct end *e = calloc(1, sizeof *e);
    dialogue_init(&e->dialogue, put, &e->out);
    assert_true(dialogue_up(&e->dialogue, 0));
    return e;
}

static void free_end(struct end *e)
{
    dialogue_free(&e->dialogue);
    assert_int_equal(e->dialogue.held, 0);
    free(e);
}

static void test_dialogue_connections_that_break_anywhere_lose_and_double_nothing(void **state)
{
    (void)state;
    const char *given = getenv("KEEL_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 4711;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    struct end *a = new_end(), *b = new_end();
    for (int step = 0; step < 200000; step++) {
        uint64_t what = rng_below(&r, 100);
        if (what < 20)
            say(a, (size_t)rng_below(&r, BODY_MAX));
        else if (what < 25)
            say(b, (size_t)rng_below(&r, BODY_MAX));
        else if (what < 70)
            deliver(a, b);
        else if (what < 99)
            deliver(b, a);
        else if (rng_below(&r, 10) == 0)
            break_and_resume(a, b);
    }
    while (a->out.count || b->out.count) {
        deliver(a, b);
        deliver(b, a);
    }
    assert_int_equal(a->expected, b->next);
    assert_int_equal(b->expected, a->next);
    free_end(a);
    free_end(b);
}

static void test_dialogue_what_has_arrived_is_not_kept(void **state)
{
    (void)state;
    enum { FRAMES = 10000, LEN = 1000 };
    struct end *a = new_end(), *b = new_end();
    size_t most = 0;
    for (int i = 0; i < FRAMES; i++) {
        say(a, LEN);
        deliver(a, b);
        deliver(b, a);
        most = a->dialogue.held > most ? a->dialogue.held : most;
    }
    assert_true(most <= 64 * 1024); /* what it is short of an acknowledgement */
    free_end(a);
    free_end(b);
}

static void test_dialogue_what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct end *a = new_end();
    uint8_t more[8] = {200};
    say(a, 4);
    dialogue_receive(&a->dialogue, MSG_ACK, more, sizeof more);
    assert_int_equal(a->dialogue.acked, 0);
    dialogue_down(&a->dialogue);
    assert_false(dialogue_up(&a->dialogue, 2)); /* more than was sent */
    assert_true(dialogue_up(&a->dialogue, 1));
    dialogue_down(&a->dialogue);
    assert_false(dialogue_up(&a->dialogue, 0)); /* less than was acknowledged, and is gone */
    free_end(a);
}

static void test_dialogue_frames_of_the_connection_are_not_sent_again(void **state)
{
    (void)state;
    struct end *a = new_end();
    dialogue_down(&a->dialogue);
    dialogue_send(&a->dialogue, MSG_PING, NULL, 0);
    assert_int_equal(a->dialogue.sent, 0);
    assert_true(dialogue_up(&a->dialogue, 0));
    assert_int_equal(a->out.count, 0);
    free_end(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialogue_connections_that_break_anywhere_lose_and_double_nothing),
        cmocka_unit_test(test_dialogue_what_has_arrived_is_not_kept),
        cmocka_unit_test(test_dialogue_what_cannot_be_is_refused),
        cmocka_unit_test(test_dialogue_frames_of_the_connection_are_not_sent_again),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
