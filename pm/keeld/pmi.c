/* PMI between nodes: agents report to the root among them, which keelrun is not, so that an MPI program can finalize
 * after keelrun's death. The rules are in pmi_root.h; here is who talks to whom. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/log.h"

#include <stdlib.h>
#include <string.h>

enum { ROOT_CONNECT_MS = 5000, ROOT_AGAIN_MS = 50 };

static void report(struct keeld *a);

static int root_node(const struct keeld *a)
{
    for (int i = 0; i < a->job.settings.nodes; i++)
        if (a->view.alive[i])
            return i;
    return 0;
}

/* ---- at the root ---- */

static json_t *release_message(const struct keeld *a)
{
    return json_pack("{s:I, s:o}", "round", (json_int_t)a->pmi.root_released, "kvs", pmi_root_pairs(a->pmi.root));
}

static void release_here(struct keeld *a, const json_t *m)
{
    long long round;
    if (!codec_int(m, "round", 1, INT64_MAX, &round) || a->pmi.fence_round == a->pmi.fence_done ||
        round < a->pmi.fence_round)
        return;
    a->pmi.fence_done = a->pmi.fence_round;
    keeld_ranks_pmi_release(a, json_object_get(m, "kvs"));
}

/* A round may have become complete: tell everybody who has reported here. */
static void root_advance(struct keeld *a)
{
    long long complete = pmi_root_complete(a->pmi.root);
    if (complete <= a->pmi.root_released)
        return;
    a->pmi.root_released = complete;
    json_t *m = release_message(a);
    for (struct keeld_guest *g = a->console.guests; g; g = g->next)
        if (g->node >= 0)
            conn_send_json(g->conn, MSG_PMI_RELEASE, json_incref(m));
    release_here(a, m);
    json_decref(m);
}

void keeld_pmi_report(struct keeld *a, struct keeld_guest *guest, const json_t *m)
{
    long long node, round;
    if (a->state < KEELD_RUNNING || !a->pmi.root || !codec_int(m, "node", 0, a->job.settings.nodes - 1, &node) ||
        !codec_int(m, "round", 1, INT64_MAX, &round))
        return;
    guest->node = (int)node;
    pmi_root_report(a->pmi.root, (int)node, round, json_object_get(m, "kvs"));
    if (round <= a->pmi.root_released) /* it asks again for what it has not heard */
        conn_send_json(guest->conn, MSG_PMI_RELEASE, release_message(a));
    root_advance(a);
}

/* ---- at every node ---- */

static void root_open(struct pm_conn *c)
{
    report(c->user);
}

static void root_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    json_t *m = type == MSG_PMI_RELEASE ? codec_object(body, len) : NULL;
    if (m)
        release_here(c->user, m);
    json_decref(m);
}

static void root_again(uv_timer_t *timer)
{
    report(timer->data);
}

static void root_lost(struct pm_conn *c, const char *why)
{
    struct keeld *a = c->user;
    log_info("the PMI root, node %d, is not reached: %s", a->pmi.root_at, why);
    a->pmi.root_conn = NULL;
    if (a->pmi.fence_round != a->pmi.fence_done && a->state == KEELD_RUNNING)
        uv_timer_start(&a->pmi.root_timer, root_again, ROOT_AGAIN_MS, 0);
}

/* Tell the root of the round that we are in, unless we know its end. */
static void report(struct keeld *a)
{
    static const struct conn_events events = {root_open, root_frame, root_lost};
    if (a->pmi.fence_round == a->pmi.fence_done || a->state != KEELD_RUNNING)
        return;
    int root = root_node(a);
    if (root == a->launch.node) {
        pmi_root_report(a->pmi.root, root, a->pmi.fence_round, pmi_own_pairs(a->pmi.server));
        root_advance(a);
        return;
    }
    if (a->pmi.root_conn && a->pmi.root_at != root) {
        conn_close(a->pmi.root_conn);
        a->pmi.root_conn = NULL;
    }
    if (!a->pmi.root_conn) {
        const struct session_key key = {.id = SESSION_OF_JOB, .secret = a->job.secret};
        a->pmi.root_at = root;
        a->pmi.root_conn = conn_connect(&a->loop, a->self_host, a->peers[root].host, a->peers[root].port,
                                        a->launch.job_id, &key, ROOT_CONNECT_MS, &events, a);
    } else if (a->pmi.root_conn->open) {
        conn_send_json(a->pmi.root_conn, MSG_PMI_FENCE,
                       json_pack("{s:i, s:I, s:O}", "node", a->launch.node, "round", (json_int_t)a->pmi.fence_round,
                                 "kvs", pmi_own_pairs(a->pmi.server)));
    }
}

void keeld_pmi_fence(struct keeld *a)
{
    a->pmi.fence_round++;
    report(a);
}

void keeld_pmi_view(struct keeld *a)
{
    if (!a->pmi.root)
        return; /* another launcher's processes */
    for (int i = 0; i < a->job.settings.nodes; i++)
        pmi_root_set_alive(a->pmi.root, i, a->view.alive[i]);
    if (root_node(a) == a->launch.node)
        root_advance(a);
    report(a);
}

void keeld_pmi_open(struct keeld *a)
{
    a->pmi.root = pmi_root_create(a->job.settings.nodes);
    uv_timer_init(&a->loop, &a->pmi.root_timer);
    a->pmi.root_timer.data = a;
}
