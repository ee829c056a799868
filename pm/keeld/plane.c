/* The plane behind the process half: what it says, and the view that it brings. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

#include <stdio.h>
#include <string.h>

static void plane_assigned(void *user, int seat, struct life life)
{
    keeld_ranks_assigned(user, seat, life);
}

static void plane_respawn(void *user, struct life life)
{
    struct keeld *a = user;
    if (a->state == KEELD_RUNNING && !keeld_kind_holds(a, life))
        keeld_ranks_respawn(a, life);
}

static void plane_release(void *user, int seat)
{
    keeld_ranks_release(user, seat);
}

static void plane_stay(void *user, int seat)
{
    keeld_ranks_stay(user, seat);
}

static void plane_end(void *user, int seat)
{
    keeld_ranks_end(user, seat);
}

static void plane_here(void *user)
{
    struct keeld *a = user;
    if (a->kind.here)
        return;
    a->kind.here = true;
    keeld_kind_is_keels(a);
    keeld_dialogue_send(a, MSG_HERE, NULL, 0);
}

static void plane_hidden_death(void *user, int seat, int pid, int signal)
{
    keeld_ranks_hidden_death(user, seat, pid, signal);
}

static void plane_output(void *user, int seat, uint32_t id, bool begins, const uint64_t at[2])
{
    keeld_ranks_output(user, seat, id, begins, at);
}

static void plane_plain_death(void *user, int seat)
{
    keeld_ranks_plain_death(user, seat);
}

static void view_take(struct keeld_view *v, const struct job_settings *s, uint64_t epoch, const int *rank_node,
                      const bool *node_alive)
{
    int total = settings_ids(s);
    v->epoch = epoch;
    memcpy(v->rank_node, rank_node, (size_t)s->ranks * sizeof *rank_node);
    memcpy(v->alive, node_alive, (size_t)total * sizeof *node_alive);
    for (int i = v->born; i < total; i++)
        if (node_alive[i]) {
            v->born = i + 1;
            FAULT_POINT("view.born");
        }
}

static json_t *loss_json(const struct replica_loss *loss)
{
    return json_pack("{s:i, s:i, s:i, s:i}", "rank", loss->native, "node", loss->node, "signal", loss->signal, "code",
                     loss->code);
}

json_t *keeld_sets_json(const struct replica_map *m, const struct replica_loss *loss)
{
    json_t *sets = json_array();
    for (int s = 0; s < m->replicas; s++)
        json_array_append_new(sets, loss[s].retired ? loss_json(&loss[s]) : json_null());
    return sets;
}

static void set_sets(json_t *view, const struct replica_map *m, const struct plane_view *v)
{
    json_object_set_new(view, "sets", keeld_sets_json(m, v->loss));
    json_object_set_new(view, "in_vain", keeld_sets_json(m, v->in_vain));
}

/* Whom another replica does the part of. */
static json_t *lost_json(const struct plane_view *v)
{
    json_t *lost = json_array();
    for (int i = 0; i < v->nlost; i++)
        json_array_append_new(lost, loss_json(&v->lost[i]));
    return lost;
}

static void plane_view(void *user, const struct plane_view *v)
{
    struct keeld *a = user;
    const int *rank_node = v->rank_node;
    const bool *node_alive = v->node_alive;
    int total = settings_ids(&a->job.settings);
    if (a->state != KEELD_RUNNING)
        return;
    keeld_kind_view(a, rank_node, node_alive);
    int born = a->view.born;
    view_take(&a->view, &a->job.settings, v->epoch, rank_node, node_alive);
    for (; born < a->view.born; born++)
        keeld_config_born(a, born);
    memcpy(a->view.loss, v->loss, sizeof a->view.loss);
    a->view.files = v->files;
    keeld_pmi_view(a);
    keeld_ranks_retire(a);
    keeld_partners_view(a, v);
    keeld_ranks_go_on(a);
    keeld_added_view(a);
    keeld_adding_view(a);
    if (v->by_loss) /* keelrun would say who goes on where; the end of the job says it all */
        return;
    json_t *alive = json_array();
    for (int i = 0; i < total; i++)
        json_array_append_new(alive, json_boolean(node_alive[i]));
    json_t *view = json_pack("{s:I, s:o, s:o}", "epoch", (json_int_t)v->epoch, "rank_node",
                             codec_ints(rank_node, a->job.settings.ranks), "alive", alive);
    if (replica_map_is_used(&a->job.settings.replicas))
        set_sets(view, &a->job.settings.replicas, v);
    if (v->free)
        json_object_set_new(view, "free", json_integer(v->free));
    if (v->nlost)
        json_object_set_new(view, "lost", lost_json(v));
    keeld_dialogue_send_json(a, MSG_VIEW, view);
}

static void plane_over(void *user, int code, const char *why)
{
    keeld_end(user, code, why, false);
}

static void plane_fatal(void *user, const char *why, bool out)
{
    struct keeld *a = user;
    bool returns = out && keeld_return_may(a);
    log_error("this node %s: %s", returns ? "gives up its ranks and its memory" : "ends", why);
    keeld_kill_all(a);
    if (returns)
        keeld_return_begin(a);
    else
        keeld_leave(a, 1);
}

static void plane_event(void *user, const char *json)
{
    struct keeld *a = user;
    /* once the job is over nodes go one by one, which is no failure */
    if (a->state == KEELD_RUNNING)
        keeld_dialogue_send(a, MSG_EVENT, json, strlen(json));
}

static void plane_verified(void *user, uint64_t id, const char *json)
{
    keeld_console_verified(user, id, json);
}

static void plane_rebalanced(void *user, uint64_t id, const char *json)
{
    keeld_console_rebalanced(user, id, json);
}

static void plane_waits(void *user, const char *members)
{
    keeld_waits_changed(user, members);
}

static void plane_woken(uv_poll_t *handle, int status, int events)
{
    struct keeld *a = handle->data;
    (void)events;
    if (status == 0)
        plane_dispatch(a->plane);
}

/* What is missing here becomes the one line that keelrun says of the job; all other nodes may miss the same. */
static void plane_not_opened(struct keeld *a, keel_status status, const char *error)
{
    char why[600], text[REFUSAL_MAX];
    if (error[0])
        snprintf(why, sizeof why, "node %d: %s", a->launch.node, error);
    else
        snprintf(why, sizeof why, "node %d: its memory and transport could not be set up: %s", a->launch.node,
                 refusal_text(status, text));
    keeld_fail(a, 1, why);
}

/* Where this node is, by the networks that the user names; else where it has reached keelrun from. */
static bool find_rails(struct keeld *a, struct rail_hosts *hosts, struct plane_config *config)
{
    char why[200], line[300];
    config->host = a->self_host;
    if (a->job.settings.rails.n == 0)
        return true;
    if (!rails_find(&a->job.settings.rails, hosts, why, sizeof why)) {
        snprintf(line, sizeof line, "node %d: %s", a->launch.node, why);
        keeld_fail(a, 1, line);
        return false;
    }
    config->host = hosts->of[0];
    for (int i = 1; i < hosts->n; i++)
        config->more[i - 1] = hosts->of[i];
    return true;
}

bool keeld_plane_open(struct keeld *a, struct plane_blob *blob)
{
    char error[300];
    struct rail_hosts hosts; /* until the plane is there */
    struct plane_config config = {.job_id = a->launch.job_id,
                                  .node = a->launch.node,
                                  .settings = &a->job.settings,
                                  .secret = a->job.secret,
                                  .was = a->launch.back ? a->launch.back->node + 1 : a->job.was,
                                  .place = a->job.place,
                                  .sponsor = a->job.sponsor};
    struct plane_callbacks callbacks = {.user = a,
                                        .assigned = plane_assigned,
                                        .respawn = plane_respawn,
                                        .release = plane_release,
                                        .stay = plane_stay,
                                        .end = plane_end,
                                        .here = plane_here,
                                        .hidden_death = plane_hidden_death,
                                        .output = plane_output,
                                        .plain_death = plane_plain_death,
                                        .view = plane_view,
                                        .job_over = plane_over,
                                        .fatal = plane_fatal,
                                        .event = plane_event,
                                        .verified = plane_verified,
                                        .rebalanced = plane_rebalanced,
                                        .waits = plane_waits};
    if (!find_rails(a, &hosts, &config))
        return false;
    log_keep_errors(error, sizeof error);
    keel_status status = plane_create(&config, &callbacks, &a->plane, blob);
    log_keep_errors(NULL, 0);
    if (status != KEEL_OK) {
        plane_not_opened(a, status, error);
        return false;
    }
    a->plane_wake = keeld_watch(a, plane_wake_fd(a->plane), plane_woken);
    return true;
}
