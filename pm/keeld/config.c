/* The job as keelrun, or who has started its processes, describes it: CONFIG, START, and nodes that come later. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/descriptors.h"
#include "pm/wire/layout.h"
#include "pm/wire/settings.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/plural.h"
#include "runtime/base/reserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* It was started as another one, in whose place nobody else has come, or with more between. */
static void become_node(struct keeld *a, int node)
{
    char who[32];
    if (node == a->launch.node)
        return;
    a->launch.node = node;
    snprintf(who, sizeof who, "keeld node %d", node);
    log_init(who);
    keeld_console_close(a);
    keeld_console_open(a);
}

static void job_of_added(struct keeld_job *job, const json_t *m)
{
    long long was = 0, place = 0, start_s = 0;
    const char *keelrun = json_string_value(json_object_get(m, "keelrun"));
    job->added = json_object_get(m, "added") != NULL;
    codec_int(m, "was", 0, settings_ids(&job->settings) - 1, &was);
    codec_int(m, "place", 0, LIMIT_NODES, &place);
    codec_int(m, "start_s", 0, INT32_MAX, &start_s);
    job->was = (int)was;
    job->place = (int)place;
    job->start_s = (int)start_s;
    job->keelrun = keelrun ? pm_strdup(keelrun) : NULL;
    (void)start_way_decode(&job->way, json_object_get(m, "way"));
}

static bool job_from_json(struct keeld *a, const json_t *m)
{
    struct keeld_job *job = &a->job;
    long long standbys, launcher, starts, window, port, console_s, node, round, sponsor = 0;
    size_t secret_len = 0;
    *job = (struct keeld_job){.secret = job->secret};
    if (!settings_decode(&job->settings, json_object_get(m, "settings")) ||
        !codec_int(m, "node", 0, settings_ids(&job->settings) - 1, &node) ||
        !codec_int(m, "round", 0, INT32_MAX, &round) || !codec_int(m, "standbys", 0, LIMIT_RANKS, &standbys) ||
        !codec_int(m, "launcher_pid", 0, INT32_MAX, &launcher) || !codec_int(m, "starts", 0, LIMIT_NODES, &starts) ||
        !codec_int(m, "window", OUTPUT_WINDOW, OUTPUT_WINDOW_MAX, &window) ||
        !codec_int(m, "console_port", 1, 65535, &port) || !codec_int(m, "console", 0, INT64_MAX, &job->console) ||
        !codec_int(m, "console_s", 1, INT32_MAX, &console_s) ||
        !codec_to_blob(json_object_get(m, "secret"), job->secret, SESSION_SECRET, &secret_len) ||
        secret_len != SESSION_SECRET)
        return false;
    job->standbys = (int)standbys;
    job->launcher_pid = (int)launcher;
    job->starts = (int)starts;
    job->window = (int)window;
    job->console_port = (int)port;
    job->console_s = (int)console_s;
    job->round = (int)round;
    codec_int(m, "sponsor", 0, settings_ids(&job->settings) - 1, &sponsor);
    job->sponsor = (int)sponsor;
    job_of_added(job, m);
    become_node(a, (int)node);
    job->argv = codec_to_strings(json_object_get(m, "argv"));
    job->env = codec_to_strings(json_object_get(m, "env"));
    char **cwd = codec_to_strings(json_object_get(m, "cwd"));
    job->cwd = cwd && cwd[0] ? pm_strdup(cwd[0]) : NULL;
    free(cwd);
    return job->argv && job->argv[0] && job->env && job->cwd;
}

/* At most a quarter of what the limit gives beyond those needed: programs' copies take descriptors, too. */
static void keep_back(long wanted, long needed)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur <= (rlim_t)needed)
        return;
    rlim_t spare = (now.rlim_cur - (rlim_t)needed) / 4;
    reserve_hold(spare < (rlim_t)wanted ? (int)spare : (int)wanted);
}

static bool enough_descriptors(struct keeld *a)
{
    int here = a->job.standbys;
    const struct job_settings *s = &a->job.settings;
    long needed = descriptors_of_agent(here, s->ranks - here, s->nodes + s->spares, a->job.starts) +
                  descriptors_of_rails(s->rails.n);
    long missing = descriptors_missing(needed);
    char why[256];
    if (!missing) {
        keep_back(descriptors_of_recovery(here, s->nodes + s->spares), needed);
        return true;
    }
    snprintf(why, sizeof why,
             "node %d: its agent needs %ld descriptors (7 for each of its %d %s, 1 for each other rank, 4 for "
             "each node, 2 for each that it starts), the hard limit is %ld: see ulimit -Hn",
             a->launch.node, needed, here, plural(here, "rank", "ranks"), needed - missing);
    keeld_fail(a, 1, why);
    return false;
}

static bool allows_silence(struct keeld *a)
{
    char why[PLANE_WHY_MAX], text[PLANE_WHY_MAX + 32];
    if (plane_allows_silence(&a->job.settings, why))
        return true;
    snprintf(text, sizeof text, "node %d: %s", a->launch.node, why);
    keeld_fail(a, 2, text);
    return false;
}

/* Of a job that has not begun. */
static void view_init(struct keeld_view *v, const struct job_settings *s)
{
    int begun = s->nodes + s->spares, total = settings_ids(s);
    v->rank_node = pm_alloc((size_t)s->ranks * sizeof *v->rank_node);
    memcpy(v->rank_node, s->rank_node, (size_t)s->ranks * sizeof *v->rank_node);
    v->alive = pm_alloc((size_t)total * sizeof *v->alive);
    for (int i = 0; i < total; i++)
        v->alive[i] = i < begun;
    v->born = begun;
}

void keeld_configure(struct keeld *a)
{
    if (!enough_descriptors(a) || !allows_silence(a))
        return;
    view_init(&a->view, &a->job.settings);
    a->state = KEELD_CONFIGURED;
    struct plane_blob blob = {0};
    if (!keeld_plane_open(a, &blob))
        return;
    if (!a->console.port && !keeld_console_listen(a)) {
        keeld_fail(a, 1, "no listener for the other nodes");
        return;
    }
    json_t *ready = json_pack("{s:i, s:o, s:s, s:i}", "round", a->job.round, "blob", codec_blob(blob.bytes, blob.len),
                              "host", a->self_host, "port", a->console.port);
    if (a->launch.join)
        keeld_join_ready(a, ready);
    else
        keeld_dialogue_send_json(a, MSG_READY, ready);
    FAULT_POINT("start.ready");
}

void keeld_config_free(struct keeld_job *job)
{
    settings_free(&job->settings);
    start_way_free(&job->way);
    free(job->keelrun);
    free(job->argv);
    free(job->env);
    free(job->cwd);
}

void keeld_view_free(struct keeld_view *v)
{
    free(v->rank_node);
    free(v->alive);
    v->rank_node = NULL;
    v->alive = NULL;
}

/* The job is another one than was said, for somebody did not come. */
static void start_over(struct keeld *a)
{
    keeld_unwatch(a->plane_wake);
    a->plane_wake = NULL;
    plane_destroy(a->plane);
    a->plane = NULL;
    keeld_view_free(&a->view);
    keeld_config_free(&a->job);
    a->state = KEELD_JOINING;
}

void keeld_config_take(struct keeld *a, const json_t *m)
{
    bool first = a->state == KEELD_JOINING;
    if (a->state >= KEELD_RUNNING)
        return; /* it cannot take part, and has said so */
    if (!first)
        start_over(a);
    uv_timer_stop(&a->lease); /* from here on it is keelrun who waits */
    uv_timer_stop(&a->dialogue.patience);
    if (!job_from_json(a, m)) {
        log_error("keelrun sent a job description that does not make sense");
        keeld_leave(a, 1);
        return;
    }
    a->fed = a->launch.back || a->job.added ? INPUT_SOME : INPUT_NONE;
    if (a->launch.back && first)
        dialogue_up(&a->dialogue.frames, 0); /* as the node that it is from now on */
    FAULT_POINT("start.configured");
    if (first)
        keeld_output_widen(a, a->job.window);
    keeld_configure(a);
}

static bool was_told(const struct keeld_peer *p, const struct plane_blob *blob)
{
    do {
        if (p->blob && p->blob_len == blob->len && memcmp(p->blob, blob->bytes, blob->len) == 0)
            return true;
        p = p->other;
    } while (p);
    return false;
}

/* Where a node is; null: nobody has come by that number yet. */
static bool take_peer(struct keeld *a, int node, const json_t *peer, const json_t *blob, struct plane_blob *out)
{
    long long port = 0;
    size_t len = 0;
    const char *host = json_string_value(json_object_get(peer, "host"));
    *out = (struct plane_blob){0};
    if (json_is_null(blob))
        return true;
    if (!codec_to_blob(blob, out->bytes, sizeof out->bytes, &len))
        return false;
    out->len = (uint32_t)len;
    codec_int(peer, "port", 1, 65535, &port);
    struct keeld_peer *is = &a->peers[node];
    if (was_told(is, out))
        return true;
    if (is->blob) {
        struct keeld_peer *other = pm_alloc(sizeof *other);
        *other = *is;
        is->other = other;
    }
    is->blob = pm_alloc(len ? len : 1);
    is->blob_len = len;
    memcpy(is->blob, out->bytes, len);
    snprintf(is->host, sizeof is->host, "%s", host ? host : "?");
    is->port = (int)port;
    return true;
}

void keeld_start(struct keeld *a, const json_t *list, const json_t *peers)
{
    size_t total = (size_t)settings_ids(&a->job.settings), said = json_array_size(list);
    if (a->state != KEELD_CONFIGURED || said > total || json_array_size(peers) != said)
        return;
    FAULT_POINT("start.told");
    a->peers = pm_alloc(total * sizeof *a->peers);
    struct plane_blob *blobs = pm_alloc(total * sizeof *blobs);
    bool good = true;
    for (size_t i = 0; i < said; i++)
        good &= take_peer(a, (int)i, json_array_get(peers, i), json_array_get(list, i), &blobs[i]);
    char what[PLANE_WHY_MAX] = "keelrun's list of the nodes cannot be read", why[PLANE_WHY_MAX + 32];
    if (a->job.added)
        keeld_added_start(a);
    keel_status status = good ? plane_start(a->plane, blobs, what) : KEEL_ERR_ARG;
    free(blobs);
    if (status != KEEL_OK) {
        snprintf(why, sizeof why, "node %d: %s", a->launch.node, what);
        keeld_fail(a, 1, why);
        return;
    }
    FAULT_POINT("start.plane_begun");
    uv_timer_stop(&a->lease);
    keeld_starts_settled(a);
    a->state = KEELD_RUNNING;
    a->ran = true;
    atomic_store(a->launch.runs, true);
    if (a->launch.join)
        keeld_join_run(a);
    else
        keeld_ranks_start(a);
    if (a->launch.back)
        keeld_return_started(a);
    FAULT_POINT("start.ranks_begun");
}

/* A node that comes later is there; it is no member yet, and becomes one only when all that live have said that they
 * know where it is. */
bool keeld_config_learn(struct keeld *a, const json_t *m)
{
    long long node;
    struct plane_blob blob;
    return codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) &&
           take_peer(a, (int)node, m, json_object_get(m, "blob"), &blob) && blob.len > 0 &&
           plane_meet(a->plane, (int)node, &blob) == KEEL_OK;
}

static bool is_node(const struct keeld *a, int node, const struct keeld_peer *p)
{
    struct plane_blob blob = {.len = (uint32_t)p->blob_len};
    if (!p->blob)
        return false;
    memcpy(blob.bytes, p->blob, p->blob_len);
    return plane_is_node(a->plane, node, &blob);
}

void keeld_config_born(struct keeld *a, int node)
{
    struct keeld_peer *first = &a->peers[node], *p = first;
    while (p && !is_node(a, node, p))
        p = p->other;
    if (!p)
        return;
    struct keeld_peer is = *p;
    is.other = NULL;
    p->blob = NULL;
    keeld_config_forget(first);
    *first = is;
}

void keeld_config_forget(struct keeld_peer *p)
{
    free(p->blob);
    for (struct keeld_peer *o = p->other, *next; o; o = next) {
        next = o->other;
        free(o->blob);
        free(o);
    }
    *p = (struct keeld_peer){0};
}

/* NULL: it is not for us. */
static json_t *meet(struct keeld *a, const json_t *m)
{
    long long node;
    FAULT_POINT("meet.told");
    if (a->state != KEELD_RUNNING || !codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) ||
        node == a->launch.node)
        return NULL;
    json_t *met = json_pack("{s:I}", "node", (json_int_t)node);
    if (node < a->view.born)
        json_object_set_new(met, "taken", json_true());
    else if (!keeld_config_learn(a, m))
        json_object_set_new(met, "why", json_string("what it says of itself cannot be used"));
    return met;
}

void keeld_config_meet(struct keeld *a, const json_t *m)
{
    json_t *met = meet(a, m);
    if (met)
        keeld_dialogue_send_json(a, MSG_MET, met);
    FAULT_POINT("meet.answered");
}

void keeld_config_meet_of(struct keeld *a, struct pm_conn *c, const json_t *m)
{
    json_t *met = meet(a, m);
    if (met)
        conn_send_json(c, MSG_MET, met);
    FAULT_POINT("meet.answered");
}
