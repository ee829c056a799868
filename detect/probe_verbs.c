/* The probe over libibverbs, as an entry of the helper's list: what it is told and asks of the helper. */
#include "detect/helper_internal.h"

static void on_heartbeat(void *user, int node, uint64_t value)
{
    struct helper *h = user;
    member_heartbeat(h->m, node, value, h->now);
}

static void on_broken(void *user, int node)
{
    struct helper *h = user;
    member_broken(h->m, node, h->now);
}

static void on_datagram(void *user, const void *data, size_t len)
{
    helper_datagram(user, data, len, -1);
}

static size_t on_seal(void *user, int to, const void *data, size_t len, uint8_t *out)
{
    struct helper *h = user;
    return seal_close(&h->seal, SEAL_VERBS, to, ++h->peers[to].datagrams_sent, data, len, out);
}

static bool on_admit(void *user, int node)
{
    struct helper *h = user;
    return !member_believes_dead(h->m, node);
}

bool probe_verbs_open(struct helper *h)
{
    struct verbs_config config = {.host = h->host,
                                  .self = h->config.params.self,
                                  .n = h->config.params.n,
                                  .late_ns = h->config.params.late_ns,
                                  .heartbeat = &h->heartbeat,
                                  .required = h->config.probe == PROBE_VERBS};
    struct probe_callbacks callbacks = {.user = h,
                                        .heartbeat = on_heartbeat,
                                        .broken = on_broken,
                                        .datagram = on_datagram,
                                        .seal = on_seal,
                                        .admit = on_admit};
    return verbs_open(&config, &callbacks, &h->verbs, &h->verbs_addr) == KEEL_OK;
}
