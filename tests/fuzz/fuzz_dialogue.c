/* Links: the input is a schedule of what two ends of a dialogue say, of what arrives, and of connections that break and
 * come again with the counts that both name; or, if the first byte is odd, what one end hears from an end that has the
 * keys and lies. In the first case each frame arrives once, in order; in the second nothing but memory is at stake. */
#include "pm/wire/dialogue.h"
#include "pm/wire/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIRE_MAX = 8192, BODY_MAX = 40 * 1024 };

struct frame {
    size_t len;
    uint8_t type;
    uint8_t number[8]; /* the beginning of its body */
};

struct end {
    struct dialogue dialogue;
    struct frame wire[WIRE_MAX]; /* on the present connection, from it */
    size_t first, count;
    uint32_t next, expected;
};

static struct end ends[2];
static const uint8_t zeros[BODY_MAX];

static void put(void *user, uint8_t type, const void *body, size_t len)
{
    struct end *e = user;
    if (e->count == WIRE_MAX)
        abort();
    struct frame *f = &e->wire[(e->first + e->count++) % WIRE_MAX];
    *f = (struct frame){.len = len, .type = type};
    if (len)
        memcpy(f->number, body, len < sizeof f->number ? len : sizeof f->number);
}

static void say(struct end *e, size_t len)
{
    uint8_t body[BODY_MAX] = {0};
    put_u32(body, e->next++);
    dialogue_send(&e->dialogue, MSG_OUTPUT, body, len < 4 ? 4 : len);
}

static void deliver(struct end *from, struct end *to)
{
    uint8_t body[BODY_MAX] = {0};
    if (from->count == 0)
        return;
    struct frame *f = &from->wire[from->first];
    from->first = (from->first + 1) % WIRE_MAX;
    from->count--;
    memcpy(body, f->number, sizeof f->number);
    if (dialogue_receive(&to->dialogue, f->type, body, f->len) && dialogue_is_counted(f->type) &&
        get_u32(body) != to->expected++)
        abort(); /* left out, twice, or in another order */
}

static void drop(void)
{
    for (int i = 0; i < 2; i++) {
        dialogue_down(&ends[i].dialogue);
        ends[i].first = ends[i].count = 0;
    }
}

/* One end has heard of the new connection before the other, and begins to send. */
static void connect_again(int first)
{
    drop();
    uint64_t heard[2] = {ends[0].dialogue.received, ends[1].dialogue.received};
    if (!dialogue_up(&ends[first].dialogue, heard[!first]) || !dialogue_up(&ends[!first].dialogue, heard[first]))
        abort();
}

static void honest(const uint8_t *data, size_t size)
{
    connect_again(0);
    for (size_t i = 0; i < size && ends[0].next < WIRE_MAX / 4 && ends[1].next < WIRE_MAX / 4; i++) {
        int who = data[i] & 1;
        switch ((data[i] >> 1) % 8) {
        case 0:
        case 1:
            say(&ends[who], data[i] >> 4);
            break;
        case 2:
            say(&ends[who], BODY_MAX - (data[i] >> 4));
            break;
        case 3:
            dialogue_send(&ends[who].dialogue, data[i] & 16 ? MSG_PING : MSG_BYE, NULL, 0);
            break;
        case 4:
            drop();
            break;
        case 5:
            connect_again(who);
            break;
        default:
            deliver(&ends[who], &ends[!who]);
        }
    }
    connect_again(0);
    for (int i = 0; i < 2; i++)
        while (ends[i].count > 0 || ends[!i].count > 0) {
            deliver(&ends[i], &ends[!i]);
            deliver(&ends[!i], &ends[i]);
        }
    for (int i = 0; i < 2; i++)
        if (ends[i].expected != ends[!i].next || ends[i].dialogue.sent - ends[i].dialogue.acked > 2 * 64)
            abort();
}

static void liar(const uint8_t *data, size_t size)
{
    struct dialogue *l = &ends[0].dialogue;
    for (size_t i = 0; i + 10 <= size && ends[0].count < WIRE_MAX / 2; i += 10) {
        uint64_t count = get_u32(data + i + 2) | (uint64_t)get_u32(data + i + 6) << 32;
        switch (data[i] % 4) {
        case 0:
            say(&ends[0], data[i + 1]);
            break;
        case 1:
            ends[0].first = ends[0].count = 0;
            dialogue_down(l);
            (void)dialogue_up(l, data[i + 1] & 1 ? count : l->sent - (data[i + 1] >> 1));
            break;
        case 2:
            dialogue_receive(l, MSG_ACK, data + i + 2, data[i + 1] & 1 ? 8 : data[i + 1] % 9);
            break;
        default:
            dialogue_receive(l, data[i + 1], zeros, count % BODY_MAX);
        }
        if (l->acked > l->sent || (l->sent == l->acked) != (l->first == NULL) ||
            (l->first == NULL) != (l->last == NULL))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    for (int i = 0; i < 2; i++) {
        ends[i].first = ends[i].count = ends[i].next = ends[i].expected = 0;
        dialogue_init(&ends[i].dialogue, put, &ends[i]);
    }
    if (data[0] & 1)
        liar(data + 1, size - 1);
    else
        honest(data + 1, size - 1);
    for (int i = 0; i < 2; i++)
        dialogue_free(&ends[i].dialogue);
    return 0;
}
