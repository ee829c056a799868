/* Datagrams: sealed ones from a stranger never open; the messages of a member (first byte odd) go to a member of
 * five. */
#include "detect/member.h"
#include "detect/seal.h"

#include <stdlib.h>
#include <string.h>

enum { N = 5, SELF = 1 };
static const uint64_t MS = 1000000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_send(void *user, int to, const void *data, size_t len)
{
    (void)user, (void)data;
    if (to < 0 || to >= N || len > MEMBER_DATAGRAM_MAX)
        abort();
}
static void on_node(void *user, int node)
{
    (void)user;
    if (node < 0 || node >= N)
        abort();
}
static void on_watch(void *user, int node, bool on)
{
    (void)on;
    on_node(user, node);
}
static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    (void)user, (void)epoch, (void)proposal, (void)events, (void)n;
}
static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t value)
{
    (void)user, (void)epoch, (void)events, (void)n, (void)value;
}
static void on_settled(void *user, uint64_t epoch)
{
    (void)user, (void)epoch;
}
static void on_halt(void *user, const char *reason)
{
    (void)user, (void)reason;
}
static void on_report(void *user, const struct member_report *report)
{
    (void)user, (void)report;
}

static void as_member(const uint8_t *data, size_t size)
{
    struct member_params params;
    struct member_ops ops = {.send = on_send,
                             .read = on_node,
                             .watch = on_watch,
                             .probe = on_node,
                             .prepare = on_prepare,
                             .commit = on_commit,
                             .settled = on_settled,
                             .halt = on_halt,
                             .report = on_report};
    uint64_t now = 1000 * MS;
    member_params_default(&params, N, SELF);
    struct member *m = member_create(&params, &ops, now);
    while (m && size > 2) { /* from, length, message */
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        int from = data[0] % N;
        if (from != SELF)
            member_receive(m, from, data + 2, len, now);
        now += MS;
        member_tick(m, now);
        data += 2 + len;
        size -= 2 + len;
    }
    member_destroy(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t secret[32] = "known to nobody who fuzzes";
    struct seal seal;
    struct seal_opened out;
    if (size < 1 || !seal_init(&seal, 7, secret, SELF, 3))
        return 0;
    if (data[0] & 1)
        as_member(data + 1, size - 1);
    else if (seal_open(&seal, data + 1, size - 1, &out))
        abort();
    return 0;
}
