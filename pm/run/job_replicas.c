#include "pm/run/job.h"

#include "pm/plane.h"
#include "pm/wire/codec.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct replica_map *map_of(const struct job *j)
{
    return &j->options->job.replicas;
}

static const char *name_of(int stream)
{
    return stream ? "standard error" : "standard output";
}

static void show(void *user, int rank, int stream, const uint8_t *data, size_t len)
{
    job_show(user, -1, rank, stream, data, len);
}

static void differs(void *user, int rank, int stream, int set, uint64_t at)
{
    struct job *j = user;
    j->replicas.differ |= stream == 0;
    job_say(j,
            "rank %d has not written the same in all sets: set %d and another one differ from byte %llu of its %s on",
            rank, set, (unsigned long long)at, name_of(stream));
    job_event(
        j, "output_differs",
        json_pack("{s:i, s:i, s:i, s:I}", "rank", rank, "set", set, "stream", stream + 1, "byte", (json_int_t)at));
}

static void lost(void *user, int rank, int stream, uint64_t at, uint64_t bytes)
{
    struct job *j = user;
    j->io.failed = true;
    job_say(j,
            "%llu bytes of rank %d's %s from byte %llu on are lost: a set was too far ahead of the one that is retired",
            (unsigned long long)bytes, rank, name_of(stream), (unsigned long long)at);
}

void job_replicas_begin(struct job *j)
{
    const struct replica_output_events events = {j, show, differs, lost};
    if (!replica_map_is_used(map_of(j)))
        return;
    j->replicas.lost = pm_alloc((size_t)replica_map_natives(map_of(j)) * sizeof *j->replicas.lost);
    j->replicas.output = replica_output_create(map_of(j), &events, REPLICA_KEPT_MAX);
}

void job_replicas_end(struct job *j)
{
    replica_output_destroy(j->replicas.output);
    j->replicas.output = NULL;
    free(j->replicas.lost);
    j->replicas.lost = NULL;
}

static bool loss_of(const struct job *j, const json_t *said, struct replica_loss *out)
{
    long long rank, node, signal, code;
    if (!json_is_object(said) || !codec_int(said, "rank", 0, j->options->job.ranks - 1, &rank) ||
        !codec_int(said, "node", -1, settings_ids(&j->options->job) - 1, &node) ||
        !codec_int(said, "signal", INT16_MIN, INT16_MAX, &signal) || !codec_int(said, "code", 0, 255, &code))
        return false;
    *out = (struct replica_loss){
        .retired = true, .native = (int)rank, .node = (int)node, .signal = (int)signal, .code = (int)code};
    return true;
}

/* Whole again; their output follows where they say. */
static void let_join(struct job *j, const json_t *sets)
{
    for (int s = 0; s < map_of(j)->replicas; s++)
        if (j->replicas.loss[s].retired && json_is_null(json_array_get(sets, (size_t)s))) {
            j->replicas.loss[s] = (struct replica_loss){.retired = false};
            j->replicas.in_vain[s] = false;
            job_event(j, "set_joined", json_pack("{s:i}", "set", s));
        }
}

/* Its program said that something is wrong, or crashed. */
static bool is_by_itself(const struct replica_loss *loss)
{
    static const int crashes[] = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    bool crashed = false;
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        crashed |= loss->signal == crashes[i];
    return crashed || loss->code != 0;
}

static bool leads(const struct job_replicas *r, int set)
{
    for (int s = 0; s < set; s++)
        if (!r->loss[s].retired)
            return false;
    return true;
}

/* Does what it writes count, and does it read? */
static bool counts(const struct job *j, int rank, int set)
{
    return !j->replicas.loss[set].retired && !j->replicas.lost[replica_native(map_of(j), rank, set)];
}

/* The set goes on without it. */
static void lose(struct job *j, const struct replica_loss *loss)
{
    struct replica who = replica_of(map_of(j), loss->native);
    int by = 0;
    if (!counts(j, who.rank, who.set))
        return;
    j->replicas.lost[loss->native] = true;
    while (by < map_of(j)->replicas && !counts(j, who.rank, by))
        by++;
    if (by == map_of(j)->replicas)
        return; /* the end of the job tells it */
    news_partner(&j->news, loss, by);
    job_event(j, "replica_lost",
              json_pack("{s:i, s:i, s:i, s:i, s:i}", "set", who.set, "rank", loss->native, "of_node", loss->node,
                        "signal", loss->signal, "by", by));
    replica_output_lose(j->replicas.output, loss->native);
    stdin_feed_taken(&j->feed, job_replicas_taken(j, -1, 0, 0));
}

static void lose_all(struct job *j, const json_t *lost)
{
    struct replica_loss loss;
    for (size_t i = 0; i < json_array_size(lost); i++)
        if (loss_of(j, json_array_get(lost, i), &loss))
            lose(j, &loss);
}

static void tell_in_vain(struct job *j, int set, const struct replica_loss *last)
{
    char said[160];
    int rank = replica_of(map_of(j), last->native).rank;
    if (last->node < 0)
        snprintf(said, sizeof said, "its rank %d came to its end", rank);
    else
        (void)replica_loss_said(map_of(j), set, last, said, sizeof said);
    job_say(j, "set %d stays lost: it began anew %d times in vain before it was whole; the last time, %s", set,
            PLANE_MAX_RESTARTS, said);
    job_event(j, "set_in_vain", json_pack("{s:i, s:i}", "set", set, "rank", last->native));
}

static void look_in_vain(struct job *j, const json_t *in_vain)
{
    struct replica_loss last;
    for (int s = 0; s < map_of(j)->replicas; s++)
        if (!j->replicas.in_vain[s] && loss_of(j, json_array_get(in_vain, (size_t)s), &last)) {
            j->replicas.in_vain[s] = true;
            tell_in_vain(j, s, &last);
        }
}

void job_replicas_view(struct job *j, const json_t *view)
{
    const json_t *sets = json_object_get(view, "sets");
    struct job_replicas *r = &j->replicas;
    bool is_new[REPLICAS_MAX] = {false};
    let_join(j, sets);
    for (int s = 0; s < map_of(j)->replicas; s++)
        if (!r->loss[s].retired) {
            is_new[s] = loss_of(j, json_array_get(sets, (size_t)s), &r->loss[s]);
            if (is_new[s] && is_by_itself(&r->loss[s]) && leads(r, s))
                r->failed = s + 1;
            r->lost_at[s] = is_new[s] ? (long long)j->news.epoch : r->lost_at[s];
        }
    news_sets(&j->news, r->loss);
    for (int s = 0; s < map_of(j)->replicas; s++)
        if (is_new[s])
            job_event(j, "set_retired",
                      json_pack("{s:i, s:i, s:i, s:i, s:i}", "set", s, "rank", r->loss[s].native, "of_node",
                                r->loss[s].node, "signal", r->loss[s].signal, "code", r->loss[s].code));
    for (int s = 0; s < map_of(j)->replicas; s++)
        if (is_new[s]) {
            replica_output_retire(r->output, s);
            stdin_feed_taken(&j->feed, job_replicas_taken(j, -1, 0, 0));
        }
    lose_all(j, json_object_get(view, "lost"));
    look_in_vain(j, json_object_get(view, "in_vain"));
}

/* Of a set that was lost before, and not since. */
void job_replicas_place(struct job *j, const json_t *m)
{
    long long native, out, err, epoch;
    if (!j->replicas.output || !codec_int(m, "rank", 0, j->options->job.ranks - 1, &native) ||
        !codec_int(m, "out", 0, INT64_MAX, &out) || !codec_int(m, "err", 0, INT64_MAX, &err) ||
        !codec_int(m, "epoch", 1, INT64_MAX, &epoch) ||
        epoch <= j->replicas.lost_at[replica_of(map_of(j), (int)native).set])
        return;
    replica_output_join(j->replicas.output, (int)native, 0, (uint64_t)out);
    replica_output_join(j->replicas.output, (int)native, 1, (uint64_t)err);
}

/* Rank 0 of each set is on a node of its own. */
static int first_node(const struct job *j, int set)
{
    if (j->replicas.fed[set])
        return j->replicas.fed[set] - 1;
    return j->options->job.rank_node[replica_native(map_of(j), 0, set)];
}

void job_replicas_begun(struct job *j, int node, int native, uint32_t life)
{
    struct job_replicas *r = &j->replicas;
    struct replica who = replica_of(map_of(j), native);
    uint8_t frame[4];
    if (who.rank != 0 || life <= r->fed_life[who.set])
        return;
    r->fed[who.set] = node + 1;
    r->fed_life[who.set] = life;
    r->taken[who.set] = r->given;
    put_u32(frame, life);
    if (j->feed.read > 0)
        job_send(j, node, MSG_STDIN_CUT, frame, sizeof frame);
    else if (j->feed.ended)
        job_send(j, node, MSG_STDIN, frame, sizeof frame);
}

void job_replicas_feed(struct job *j, const uint8_t *data, size_t len)
{
    uint8_t *frame = pm_alloc(4 + len);
    if (len)
        memcpy(frame + 4, data, len);
    for (int s = 0; s < map_of(j)->replicas; s++) {
        put_u32(frame, j->replicas.fed_life[s]);
        if (counts(j, 0, s) || j->replicas.fed[s])
            job_send(j, first_node(j, s), MSG_STDIN, frame, 4 + len);
    }
    free(frame);
}

size_t job_replicas_taken(struct job *j, int node, uint32_t life, size_t len)
{
    struct job_replicas *r = &j->replicas;
    unsigned long long least = 0;
    bool any = false;
    for (int s = 0; s < map_of(j)->replicas; s++) {
        r->taken[s] += first_node(j, s) == node && r->fed_life[s] == life ? len : 0;
        if (!counts(j, 0, s))
            continue;
        least = any && least < r->taken[s] ? least : r->taken[s];
        any = true;
    }
    size_t more = any && least > r->given ? (size_t)(least - r->given) : 0;
    r->given += more;
    return more;
}

void job_replicas_over(struct job *j)
{
    if (j->replicas.output)
        replica_output_settle(j->replicas.output);
    if (j->replicas.output && j->verdict.code == 0)
        replica_output_finish(j->replicas.output);
    if (j->verdict.code == 0 && j->replicas.failed && j->replicas.differ) {
        j->io.failed = true;
        job_say(j,
                "standard output is not to be relied on: sets differ, and that of set %d was shown, which ended with "
                "an error",
                j->replicas.failed - 1);
    }
}
