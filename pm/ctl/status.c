/* keelctl list, keelctl status: what the agents say of their jobs. */
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/waits.h"
#include "runtime/base/clock.h"
#include "runtime/base/plural.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int verb_list(const struct job_agents *all, const struct request *r)
{
    json_t *jobs = json_array();
    for (int i = 0; i < all->count;) {
        struct job_agents job = {.id = all->agents[i].job_id, .agents = &all->agents[i]};
        while (i < all->count && all->agents[i].job_id == job.id)
            job.count++, i++;
        json_t *status = job_status(&job);
        long long size = int_of(status, "size");
        if (!r->json)
            printf("%s  %lld %s  %d %s here  epoch %lld  %s%s\n", text_of(status, "job"), size,
                   plural(size, "rank", "ranks"), job.count, plural(job.count, "node", "nodes"),
                   int_of(status, "epoch"), text_of(status, "program"),
                   json_is_true(json_object_get(status, "keelrun")) ? "" : "  (without keelrun)");
        json_array_append_new(jobs, status);
    }
    if (r->json)
        show_json(jobs);
    json_decref(jobs);
    return 0;
}

/* The bound below which half of the reads stayed: the histogram's, so a power of two. */
static double median_us(const json_t *latency, long long reads)
{
    long long below = 0;
    json_t *count;
    size_t k;
    json_array_foreach(latency, k, count) {
        below += json_integer_value(count);
        if (2 * below >= reads)
            return (double)(2ull << k);
    }
    return 0;
}

static void show_detection(const json_t *d)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(d, "watches"), i, one)
        printf("    watches node %lld by %s: heartbeat %.0f ms old, %lld reads, half of them below %.0f us\n",
               int_of(one, "node"), text_of(d, "probe"), real_of(one, "age_ms"), int_of(one, "reads"),
               median_us(json_object_get(one, "latency_us"), int_of(one, "reads")));
    json_array_foreach(json_object_get(d, "doubts"), i, one)
        printf("    node %lld: %s for %.0f ms; %lld asked, %lld reach it, %lld do not\n", int_of(one, "node"),
               text_of(one, "state"), real_of(one, "since_ms"), int_of(one, "asked"), int_of(one, "reached"),
               int_of(one, "unreached"));
    json_array_foreach(json_object_get(d, "links"), i, one)
        printf("    link between nodes %lld and %lld broken for %.0f ms\n", int_of(one, "a"), int_of(one, "b"),
               real_of(one, "since_ms"));
    json_array_foreach(json_object_get(d, "said"), i, one)
        printf("    %.1f s ago: %s node %lld, evidence %s: %s\n", real_of(one, "ms_ago") / 1e3, text_of(one, "what"),
               int_of(one, "node"), text_of(one, "evidence"), text_of(one, "why"));
}

/* Who is who; without replicas nothing, and nothing is to be freed. */
static void map_gather(struct replica_map *m, const json_t *status)
{
    const json_t *said = json_object_get(status, "replicas");
    int sets = (int)int_of(said, "sets"), natives = (int)int_of(status, "size");
    *m = (struct replica_map){0};
    if (sets < 2 || sets > REPLICAS_MAX || natives < sets || natives % sets)
        return;
    int *native = pm_alloc((size_t)natives * sizeof *native);
    if (codec_to_ints(json_object_get(said, "native"), native, natives, 0, natives - 1))
        (void)replica_map_init_from(m, natives / sets, sets, native);
    free(native);
}

/* What the nodes say of who waits, together. False: nothing to go by. */
static bool waits_gather(struct waits *w, const json_t *status, uint64_t now)
{
    json_t *node;
    size_t i;
    int ranks = (int)int_of(status, "size"), nodes = (int)json_array_size(json_object_get(status, "alive"));
    int *rank_node = pm_alloc((size_t)(ranks + 1) * sizeof *rank_node);
    bool good =
        ranks > 0 && nodes > 0 && codec_to_ints(json_object_get(status, "rank_node"), rank_node, ranks, -1, nodes - 1);
    if (good)
        waits_init(w, nodes, ranks, rank_node, NULL, NULL);
    free(rank_node);
    json_array_foreach(json_object_get(status, "nodes"), i, node)
        if (good)
            waits_report(w, (int)int_of(node, "node"), json_object_get(node, "waiting"), now);
    return good;
}

static void show_waits(const struct waits *w, int node, int rank, uint64_t now)
{
    char line[WAITS_LINE];
    int whose;
    for (int i = 0; waits_text(w, node, i, now, &whose, line); i++)
        if (whose == rank)
            printf("         %s\n", line);
}

static void show_rank(const struct waits *w, const struct replica_map *m, int node, const json_t *rank, uint64_t now)
{
    int number = (int)int_of(rank, "rank");
    char name[REPLICA_NAME];
    printf("    %-9s pid %-7lld incarnation %lld  %s%s\n", replica_name(m, number, name), int_of(rank, "pid"),
           int_of(rank, "incarnation"), text_of(rank, "state"),
           w && waits_is_stopped(w, number) && strcmp(text_of(rank, "state"), "running") == 0
               ? ", stopped by a signal or a debugger"
               : "");
    if (w)
        show_waits(w, node, number, now);
}

int verb_status(const struct job_agents *job, const struct request *r)
{
    json_t *status = job_status(job), *node, *rank;
    size_t i, k;
    if (r->json) {
        show_json(status);
        json_decref(status);
        return 0;
    }
    struct waits waits;
    uint64_t now = clock_now_ns();
    long long size = int_of(status, "size");
    bool gathered = waits_gather(&waits, status, now);
    struct replica_map map;
    map_gather(&map, status);
    if (gathered)
        waits.replicas = replica_map_is_used(&map) ? &map : NULL;
    printf("job %s  %s  %lld %s  epoch %lld%s\n", text_of(status, "job"), text_of(status, "program"), size,
           plural(size, "rank", "ranks"), int_of(status, "epoch"),
           json_is_true(json_object_get(status, "keelrun")) ? "" : "  (without keelrun)");
    json_array_foreach(json_object_get(status, "nodes"), i, node) {
        if (!json_object_get(node, "agent_pid")) {
            printf("node %-3lld %s\n", int_of(node, "node"), text_of(node, "state"));
            continue;
        }
        printf("node %-3lld %-15s %-8s agent %lld%s\n", int_of(node, "node"), text_of(node, "host"),
               text_of(node, "state"), int_of(node, "agent_pid"),
               json_is_true(json_object_get(node, "spare")) ? "  spare" : "");
        json_array_foreach(json_object_get(node, "ranks"), k, rank)
            show_rank(gathered ? &waits : NULL, &map, (int)int_of(node, "node"), rank, now);
        if (r->detect)
            show_detection(json_object_get(node, "detection"));
    }
    if (r->counters)
        counters_show(json_object_get(status, "counters"));
    if (gathered)
        waits_fini(&waits);
    replica_map_fini(&map);
    json_decref(status);
    return 0;
}
