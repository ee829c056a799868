/* What a stranger says to a listener of sealed connections (first byte even: its connect data, and messages that are
 * not sealed), and what a member's sealed frames say (odd). The input is records: one byte of length, bytes. */
#include "runtime/base/log.h"
#include "runtime/net/sealed/sealed.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/net/sealed/sealed_box.h"
#include "tests/lib/net/mem.h"

enum { MEMORY = 256, KEY = 7 };
static const uint8_t secret[32] = "known to nobody who fuzzes", scalar[BOX_POINT] = {1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    struct tp *tp, *raw;
    struct tp_ep *ep, *raw_ep; /* NULL once it is closed */
    struct box box;
    bool open;
};

static void must(keel_status status)
{
    if (status != KEEL_OK)
        abort();
}

static void turn(struct fuzz *f, const uint8_t *greeting)
{
    struct tp_event events[8];
    int n = tp_poll(f->tp, events, 8);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_CONNREQ && f->tp->table->accept(f->tp, events[i].req, NULL, &f->ep) == KEEL_OK &&
            !greeting)
            abort(); /* a stranger's */
        if (events[i].type == TP_RECV && !greeting)
            abort();
        if (events[i].type == TP_CLOSED) {
            tp_ep_destroy(events[i].ep);
            f->ep = NULL;
        }
    }
    n = tp_poll(f->raw, events, 8);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_RECV && greeting && !f->open)
            f->open = box_take_answer(&f->box, secret, events[i].data, events[i].len);
        if (events[i].type == TP_CLOSED) {
            tp_ep_destroy(events[i].ep);
            f->raw_ep = NULL;
        }
    }
}

/* A head and a place that make sense, with the bytes over them. */
static size_t frame_of(const uint8_t *data, size_t len, uint8_t *out)
{
    uint64_t sense[5] = {1 + (len ? data[0] % 6 : 0), 1, KEY, 0, 8};
    size_t size = len > sizeof sense ? len : len % 2 ? len : sizeof sense;
    memcpy(out, sense, sizeof sense);
    if (len > 1)
        memcpy(out + 4 * (data[0] / 6 % 10), data + 1, len - 1 < 256 - 40 ? len - 1 : 256 - 40);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    log_threshold = -1;
    bool member = data[0] & 1;
    uint8_t *memory = malloc(MEMORY), hello[BOX_GREETING];
    struct fuzz f = {0};
    struct tp *inner;
    struct tp_addr addr;
    must(tp_mem.open(&(struct tp_config){.host = "f"}, &inner));
    must(tp_sealed_open(inner, secret, &f.tp));
    must(f.tp->table->listen(f.tp, &addr));
    must(f.tp->table->reg(f.tp, memory, MEMORY, KEY));
    must(tp_mem.open(&(struct tp_config){.host = "r"}, &f.raw));
    memset(memory, 0, MEMORY);
    data++, size--;
    box_greet(&f.box, secret, scalar, NULL, 0, hello);
    size_t len = size < TP_CONNECT_MAX ? size : TP_CONNECT_MAX;
    must(tp_mem.connect(f.raw, &addr, member ? hello : data, member ? sizeof hello : len, NULL, &f.raw_ep));
    for (int i = 0; i < 3; i++)
        turn(&f, member ? hello : NULL);
    while (size >= 1 && f.raw_ep) {
        uint8_t bytes[256 + 40 + BOX_TAG] = {0};
        len = data[0] < size - 1 ? data[0] : size - 1;
        size_t sent = len;
        if (member && f.open) {
            sent = frame_of(data + 1, len, bytes);
            box_seal(&f.box, bytes, sent);
            sent += BOX_TAG;
        } else {
            memcpy(bytes, data + 1, len);
        }
        (void)tp_send(f.raw_ep, bytes, sent, NULL, 0, NULL);
        data += 1 + len;
        size -= 1 + len;
        turn(&f, member ? hello : NULL);
    }
    f.tp->table->close(f.tp);
    f.raw->table->close(f.raw);
    free(memory);
    return 0;
}
