/* What the processes of a job have counted (runtime/base/counters.h), node by node and together. */
#include "pm/ctl/job_status.h"
#include "runtime/base/counters.h"

#include <stdio.h>

/* Takes more, {NAME: n, ...}, into sum. */
static void join(json_t *sum, const json_t *more)
{
    for (int c = 0; c < COUNTERS_N; c++) {
        const char *name = counters[c].name;
        long long there = int_of(sum, name), value = int_of(more, name);
        bool adds = counters[c].kind != COUNTER_MOST && counters[c].kind != COUNTER_SAME;
        long long all = adds ? there + value : there > value ? there : value;
        if (all)
            json_object_set_new(sum, name, json_integer(all));
    }
}

static json_t *entry(json_t *ranks, const char *rank)
{
    if (!json_object_get(ranks, rank))
        json_object_set_new(ranks, rank, json_object());
    return json_object_get(ranks, rank);
}

json_t *counters_of_job(const json_t *nodes)
{
    json_t *agent = json_object(), *ranks = json_object(), *node, *one;
    const char *rank;
    size_t i;
    json_array_foreach(nodes, i, node) {
        json_t *said = json_object_get(node, "counters");
        join(agent, json_object_get(said, "agent"));
        json_object_foreach(json_object_get(said, "ranks"), rank, one)
            join(entry(ranks, rank), one);
    }
    return json_pack("{s:o, s:o}", "agent", agent, "ranks", ranks);
}

void counters_show(const json_t *said)
{
    static const char *const units[] = {[COUNTER_COUNT] = "",
                                        [COUNTER_BYTES] = " bytes",
                                        [COUNTER_TIME] = " ns",
                                        [COUNTER_MOST] = "",
                                        [COUNTER_SAME] = ""};
    json_t *sum = json_object(), *one;
    const char *rank;
    join(sum, json_object_get(said, "agent"));
    json_object_foreach(json_object_get(said, "ranks"), rank, one)
        join(sum, one);
    printf("counters of the job\n");
    for (int c = 0; c < COUNTERS_N; c++)
        if (int_of(sum, counters[c].name))
            printf("    %-22s %lld%s  (%s)\n", counters[c].name, int_of(sum, counters[c].name), units[counters[c].kind],
                   counters[c].help);
    json_decref(sum);
}
