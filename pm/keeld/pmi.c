/* PMI between nodes: agents report to the root among them, which keelrun is not, so that an MPI program can finalize
 * after keelrun's death. The rules are in pmi_root.h; here is who talks to whom. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/layout.h"
#include "runtime/base/log.h"

#include <stdio.h>
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

/* The view's number of a set's rank, with or without sets. */
static int native_of(const struct keeld *a, int rank, int world)
{
    return replica_native(&a->job.settings.replicas, rank, world);
}

static int ranks_of_world(const struct keeld *a)
{
    const struct job_settings *s = &a->job.settings;
    return replica_map_is_used(&s->replicas) ? s->replicas.ranks : s->ranks;
}

/* Returns how many ranks of the world begin here. */
static int look_where(struct keeld *a, int world)
{
    int here = 0;
    struct keeld_world *w = &a->pmi.world[world];
    w->takes_part = pm_alloc((size_t)a->job.settings.nodes * sizeof *w->takes_part);
    for (int q = 0; q < ranks_of_world(a); q++) {
        int node = a->job.settings.rank_node[native_of(a, q, world)];
        w->takes_part[node] = true;
        here += node == a->launch.node;
    }
    return here;
}

int keeld_pmi_world(const struct keeld *a, int rank)
{
    return rank < 0 ? 0 : replica_of(&a->job.settings.replicas, rank).set;
}

/* ---- at the root ---- */

static json_t *release_message(const struct keeld *a, int world)
{
    const struct keeld_world *w = &a->pmi.world[world];
    return json_pack("{s:i, s:I, s:o}", "set", world, "round", (json_int_t)w->root_released, "kvs",
                     pmi_root_pairs(w->root));
}

static void release_here(struct keeld *a, const json_t *m)
{
    long long round, world;
    if (!codec_int(m, "round", 1, INT64_MAX, &round) || !codec_int(m, "set", 0, a->pmi.worlds - 1, &world))
        return;
    struct keeld_world *w = &a->pmi.world[world];
    if (w->fence_round == w->fence_done || round < w->fence_round)
        return;
    w->fence_done = w->fence_round;
    keeld_ranks_pmi_release(a, (int)world, json_object_get(m, "kvs"));
}

/* A round may have become complete: tell everybody who has reported here. */
static void root_advance(struct keeld *a, int world)
{
    struct keeld_world *w = &a->pmi.world[world];
    long long complete = pmi_root_complete(w->root);
    if (complete <= w->root_released)
        return;
    w->root_released = complete;
    json_t *m = release_message(a, world);
    for (struct keeld_guest *g = a->console.guests; g; g = g->next)
        if (g->node >= 0)
            conn_send_json(g->conn, MSG_PMI_RELEASE, json_incref(m));
    release_here(a, m);
    json_decref(m);
}

void keeld_pmi_report(struct keeld *a, struct keeld_guest *guest, const json_t *m)
{
    long long node, round, world;
    if (a->state < KEELD_RUNNING || !a->pmi.worlds || !codec_int(m, "node", 0, a->job.settings.nodes - 1, &node) ||
        !codec_int(m, "round", 1, INT64_MAX, &round) || !codec_int(m, "set", 0, a->pmi.worlds - 1, &world))
        return;
    struct keeld_world *w = &a->pmi.world[world];
    guest->node = (int)node;
    pmi_root_report(w->root, (int)node, round, json_object_get(m, "kvs"));
    if (round <= w->root_released) /* it asks again for what it has not heard */
        conn_send_json(guest->conn, MSG_PMI_RELEASE, release_message(a, (int)world));
    root_advance(a, (int)world);
}

/* ---- at every node ---- */

static bool is_waiting(const struct keeld_world *w)
{
    return w->fence_round != w->fence_done;
}

static bool any_waits(const struct keeld *a)
{
    for (int i = 0; i < a->pmi.worlds; i++)
        if (is_waiting(&a->pmi.world[i]))
            return true;
    return false;
}

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
    if (any_waits(a) && a->state == KEELD_RUNNING)
        uv_timer_start(&a->pmi.root_timer, root_again, ROOT_AGAIN_MS, 0);
}

static void report_here(struct keeld *a)
{
    for (int i = 0; i < a->pmi.worlds; i++) {
        struct keeld_world *w = &a->pmi.world[i];
        if (!is_waiting(w))
            continue;
        pmi_root_report(w->root, a->launch.node, w->fence_round, pmi_own_pairs(w->server));
        root_advance(a, i);
    }
}

static void report_there(struct keeld *a)
{
    for (int i = 0; i < a->pmi.worlds; i++) {
        const struct keeld_world *w = &a->pmi.world[i];
        if (is_waiting(w))
            conn_send_json(a->pmi.root_conn, MSG_PMI_FENCE,
                           json_pack("{s:i, s:i, s:I, s:O}", "node", a->launch.node, "set", i, "round",
                                     (json_int_t)w->fence_round, "kvs", pmi_own_pairs(w->server)));
    }
}

/* Tell the root of the rounds that we are in, unless we know their end. */
static void report(struct keeld *a)
{
    static const struct conn_events events = {root_open, root_frame, root_lost};
    if (!any_waits(a) || a->state != KEELD_RUNNING)
        return;
    int root = root_node(a);
    if (root == a->launch.node) {
        report_here(a);
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
        report_there(a);
    }
}

void keeld_pmi_fence(struct keeld *a, int world)
{
    a->pmi.world[world].fence_round++;
    report(a);
}

/* A node that has no rank of the world is not waited for either, nor is anybody of a set that ends. */
static void show_alive(struct keeld *a)
{
    for (int i = 0; i < a->pmi.worlds; i++)
        for (int m = 0; m < a->job.settings.nodes; m++)
            pmi_root_set_alive(a->pmi.world[i].root, m,
                               a->view.alive[m] && !a->view.loss[i].retired && a->pmi.world[i].takes_part[m]);
}

void keeld_pmi_view(struct keeld *a)
{
    show_alive(a);
    for (int i = 0; i < a->pmi.worlds && root_node(a) == a->launch.node; i++)
        root_advance(a, i);
    report(a);
}

/* ---- the servers ---- */

/* Which rank is on which node, as the program counts them: the same in all sets. */
static char *mapping_of(const struct keeld *a, int world)
{
    const struct job_settings *s = &a->job.settings;
    int ranks = ranks_of_world(a), *node = pm_alloc((size_t)ranks * sizeof *node);
    if (replica_map_is_used(&s->replicas))
        replica_map_number(&s->replicas, world, s->rank_node, node);
    else
        memcpy(node, s->rank_node, (size_t)ranks * sizeof *node);
    size_t len = layout_pmi_mapping(node, ranks, NULL, 0);
    char *mapping = pm_alloc(len + 1);
    layout_pmi_mapping(node, ranks, mapping, len + 1);
    free(node);
    return mapping;
}

void keeld_pmi_open(struct keeld *a)
{
    char kvsname[64];
    int sets = a->job.settings.replicas.replicas;
    a->pmi.worlds = sets ? sets : 1;
    for (int i = 0; i < a->pmi.worlds; i++) {
        char *mapping = mapping_of(a, i);
        int n = snprintf(kvsname, sizeof kvsname, "kvs_%016llx", (unsigned long long)a->launch.job_id);
        if (sets) /* what MPI names after it on one machine is of one set */
            snprintf(kvsname + n, sizeof kvsname - (size_t)n, "_%d", i);
        a->pmi.world[i].server = pmi_create(ranks_of_world(a), look_where(a, i), kvsname, mapping);
        a->pmi.world[i].root = pmi_root_create(a->job.settings.nodes);
        free(mapping);
    }
    show_alive(a);
    uv_timer_init(&a->loop, &a->pmi.root_timer);
    a->pmi.root_timer.data = a;
}

void keeld_pmi_close(struct keeld *a)
{
    for (int i = 0; i < a->pmi.worlds; i++) {
        free(a->pmi.world[i].takes_part);
        pmi_root_destroy(a->pmi.world[i].root);
        pmi_destroy(a->pmi.world[i].server);
    }
    a->pmi.worlds = 0;
}

struct pmi_client *keeld_pmi_client(struct keeld *a, int rank, bool late)
{
    int of = rank < 0 || late ? -1 : replica_of(&a->job.settings.replicas, rank).rank;
    return pmi_client_create(a->pmi.world[keeld_pmi_world(a, rank)].server, of);
}
