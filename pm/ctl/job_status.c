#include "pm/ctl/job_status.h"

#include "pm/ctl/ask.h"

#include <inttypes.h>
#include <stdio.h>

long long int_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Does any agent say so? */
static bool is_dying(const json_t *nodes, size_t node)
{
    json_t *one, *dying;
    size_t i, k;
    json_array_foreach(nodes, i, one)
        json_array_foreach(json_object_get(json_object_get(one, "waiting"), "dying"), k, dying)
            if (json_integer_value(dying) == (json_int_t)node)
                return true;
    return false;
}

/* Those that the newest view calls dead, or the next one will: their agents do not say so any more. nodes is in order
 * of their numbers. */
static void add_dead(json_t *nodes, const json_t *newest)
{
    const json_t *alive = json_object_get(newest, "alive");
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(alive); i++) {
        const json_t *next = json_array_get(nodes, at);
        if (next && (size_t)json_integer_value(json_object_get(next, "node")) == i)
            at++;
        else if (json_is_false(json_array_get(alive, i)))
            json_array_insert_new(nodes, at++, json_pack("{s:i, s:s}", "node", (int)i, "state", "dead"));
        else if (is_dying(nodes, i))
            json_array_insert_new(nodes, at++, json_pack("{s:i, s:s}", "node", (int)i, "state", "dying"));
    }
}

json_t *job_status(const struct job_agents *job)
{
    json_t *nodes = json_array(), *newest = NULL;
    for (int i = 0; i < job->count; i++) {
        json_t *one = ask_status(job->agents[i].fd);
        if (!one)
            one = json_pack("{s:i, s:s}", "node", job->agents[i].node, "state", "silent");
        else if (!newest || json_integer_value(json_object_get(one, "epoch")) >
                                json_integer_value(json_object_get(newest, "epoch")))
            newest = one;
        json_object_del(one, "hosts");
        json_array_append_new(nodes, one);
    }
    add_dead(nodes, newest);
    char id[17];
    snprintf(id, sizeof id, "%016" PRIx64, job->id);
    json_t *all = json_pack("{s:s, s:o}", "job", id, "nodes", nodes);
    static const char *const common[] = {"program", "size", "epoch", "alive", "rank_node", "keelrun", "replicas"};
    for (size_t i = 0; newest && i < sizeof common / sizeof common[0]; i++)
        json_object_set(all, common[i], json_object_get(newest, common[i]));
    json_object_set_new(all, "counters", counters_of_job(nodes));
    return all;
}

void show_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_COMPACT);
    putchar('\n');
}
