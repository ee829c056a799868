/* The networks of this node: what is opened before it is known which others have, and which one it is. */
#include <stdio.h>

#include "runtime/net/sealed/sealed.h"
#include "runtime/net/shm/shm.h"
#include "runtime/plane/blob.h"
#include "runtime/plane/plane_int.h"

static keel_status open_net(struct plane *p, const char *provider, bool optional, struct tp **net,
                            struct tp_addrs *addrs)
{
    const struct job_settings *s = p->config.settings;
    int others = s->nodes + s->spares - 1; /* to each and from each */
    struct tp_config config = {
        .host = p->hosts.of[0], .provider = provider, .optional = optional, .connections = 2 * others + s->ranks};
    for (int i = 1; i < p->hosts.n; i++)
        config.more[i - 1] = p->hosts.of[i];
    keel_status status = tp_net_open(&config, s->secure ? p->config.secret : NULL, net);
    if (status == KEEL_OK)
        status = addrs_listen(*net, addrs);
    return status;
}

keel_status networks_open(struct plane *p, struct blob *b)
{
    const struct job_settings *s = p->config.settings;
    snprintf(p->provider, sizeof p->provider, "%s", s->provider == PROVIDER_VERBS ? "verbs" : "tcp");
    struct tp_addrs device = {0};
    if (s->provider == PROVIDER_AUTO && !s->secure && open_net(p, "verbs", true, &p->device_net, &device) == KEEL_OK)
        b->device_addr = device.of[0];
    keel_status status = open_net(p, p->provider, false, &p->net, &b->addrs);
    if (status == KEEL_OK)
        status = tp_shm_open(&p->shm);
    return status;
}

void networks_choose(struct plane *p, const struct plane_blob *blobs, int members)
{
    bool all = p->device_net != NULL;
    struct blob b;
    for (int m = 0; all && m < members; m++)
        all = blobs[m].len == 0 || (blob_read(&blobs[m], &b) && b.device_addr.len > 0);
    struct tp *other = all ? p->net : p->device_net;
    if (all) {
        p->net = p->device_net;
        snprintf(p->provider, sizeof p->provider, "verbs");
    }
    p->device_net = NULL;
    if (other)
        other->table->close(other);
}
