/* The probe over libfabric, as an entry of the helper's list: heartbeat connections (reach.c) and datagrams (dgram.c).
 * It carries everything, so it comes last. A datagram that comes from a node to which we send by its device tells that
 * it does not use it any more. */
#include "detect/helper_internal.h"

_Static_assert(1 + TP_RAILS_MAX <= PROBE_FDS_MAX, "one for the connections, one a rail");

static struct helper *helper_of(const struct probe *probe)
{
    return ((const struct ofi *)probe)->h;
}

static void ofi_watch(struct probe *probe, int node, bool on, uint64_t now)
{
    (void)now;
    reach_watch(helper_of(probe), node, on);
}

static bool ofi_read(struct probe *probe, int node, uint64_t now)
{
    (void)now;
    return reach_read(helper_of(probe), node);
}

static bool ofi_send(struct probe *probe, int node, const void *data, size_t len)
{
    struct helper *h = helper_of(probe);
    for (int rail = 0; rail < h->rails; rail++)
        dgram_send(h->dgram[rail], node, data, len);
    return true;
}

static void ofi_fence(struct probe *probe, int node)
{
    reach_fence(helper_of(probe), node);
}

static bool poll_datagrams(struct helper *h)
{
    size_t len;
    const uint8_t *data;
    bool any = false;
    for (int rail = 0; rail < h->rails; rail++)
        for (int taken = 0; taken < 64 && (data = dgram_recv(h->dgram[rail], &len)) != NULL; taken++) {
            helper_datagram(h, data, len, rail);
            any = true;
        }
    return any;
}

static bool arm_datagrams(const struct helper *h)
{
    bool armed = true;
    for (int rail = 0; rail < h->rails; rail++)
        armed &= dgram_arm(h->dgram[rail]);
    return armed;
}

static bool ofi_poll(struct probe *probe, uint64_t now)
{
    struct helper *h = helper_of(probe);
    (void)now;
    if (h->due.links) {
        h->ofi.links_armed = false;
        h->due.links = reach_poll(h);
    }
    if (h->due.datagrams) {
        h->ofi.datagrams_armed = false;
        h->due.datagrams = poll_datagrams(h);
    }
    return h->due.links || h->due.datagrams;
}

/* What could not be armed has something. */
static bool ofi_arm(struct probe *probe)
{
    struct helper *h = helper_of(probe);
    if (!h->ofi.links_armed)
        h->due.links = !(h->ofi.links_armed = h->tp->table->arm(h->tp));
    if (!h->ofi.datagrams_armed)
        h->due.datagrams = !(h->ofi.datagrams_armed = arm_datagrams(h));
    return h->ofi.links_armed && h->ofi.datagrams_armed;
}

static int ofi_wait_fds(const struct probe *probe, int fds[PROBE_FDS_MAX])
{
    struct helper *h = helper_of(probe);
    fds[0] = h->tp->table->wait_fd(h->tp);
    for (int rail = 0; rail < h->rails; rail++)
        fds[1 + rail] = dgram_wait_fd(h->dgram[rail]);
    return 1 + h->rails;
}

static void ofi_close(struct probe *probe) /* the helper's own, and closed with it */
{
    (void)probe;
}

void probe_ofi_init(struct helper *h)
{
    static const struct probe_table table = {.name = "ofi",
                                             .watch = ofi_watch,
                                             .read = ofi_read,
                                             .send = ofi_send,
                                             .fence = ofi_fence,
                                             .poll = ofi_poll,
                                             .arm = ofi_arm,
                                             .wait_fds = ofi_wait_fds,
                                             .close = ofi_close};
    h->ofi = (struct ofi){.probe = {&table}, .h = h};
}
