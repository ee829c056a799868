/* Reports of waits: from JSON to what waits.c puts together. */
#include "pm/wire/codec.h"
#include "pm/wire/waits.h"

#include <stdio.h>
#include <string.h>

static bool read_whom(const char *text, enum waits_why *out)
{
    static const struct {
        const char *name;
        enum waits_why why;
    } known[] = {{"node", WAITS_NODE}, {"view", WAITS_VIEW},     {"holder", WAITS_HOLDER}, {"entry", WAITS_ENTRY},
                 {"word", WAITS_WORD}, {"taking", WAITS_TAKING}, {"memory", WAITS_MEMORY}, {"leaving", WAITS_LEAVING}};
    for (size_t i = 0; text && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0) {
            *out = known[i].why;
            return true;
        }
    return false;
}

static bool read_entry(const struct waits *w, const json_t *m, int64_t ahead, struct waits_entry *e)
{
    long long rank, for_rank = -1, for_node = -1, since;
    const char *call = json_string_value(json_object_get(m, "call"));
    if (!call || !read_whom(json_string_value(json_object_get(m, "whom")), &e->whom) ||
        !codec_int(m, "rank", 0, w->ranks - 1, &rank) || !codec_int(m, "since_ns", 0, INT64_MAX, &since))
        return false;
    (void)codec_int(m, "for_rank", -1, w->ranks - 1, &for_rank);
    (void)codec_int(m, "for_node", -1, w->nodes - 1, &for_node);
    e->rank = (int)rank;
    e->for_rank = (int)for_rank;
    e->for_node = (int)for_node;
    int64_t at = (int64_t)since + ahead;
    e->since_ns = at > 0 ? (uint64_t)at : 0;
    snprintf(e->call, sizeof e->call, "%s", call);
    return e->whom != WAITS_NODE || e->for_node >= 0;
}

static void read_nodes(const struct waits *w, const json_t *list, int **out, int *n)
{
    *out = pm_alloc((json_array_size(list) + 1) * sizeof **out);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t node = json_integer_value(json_array_get(list, i));
        if (node >= 0 && node < w->nodes)
            (*out)[(*n)++] = (int)node;
    }
}

static void read_lists(const struct waits *w, const json_t *report, struct waits_node *n)
{
    const json_t *stopped = json_object_get(report, "stopped"), *silent = json_object_get(report, "silent"),
                 *links = json_object_get(report, "links");
    read_nodes(w, json_object_get(report, "behind"), &n->behind, &n->behind_n);
    read_nodes(w, json_object_get(report, "dying"), &n->dying, &n->dying_n);
    n->view = json_is_true(json_object_get(report, "view"));
    n->stopped = pm_alloc((json_array_size(stopped) + 1) * sizeof *n->stopped);
    n->silent = pm_alloc((json_array_size(silent) + 1) * sizeof *n->silent);
    n->link = pm_alloc((json_array_size(links) + 1) * sizeof *n->link);
    for (size_t i = 0; i < json_array_size(stopped); i++) {
        json_int_t rank = json_integer_value(json_array_get(stopped, i));
        if (rank >= 0 && rank < w->ranks)
            n->stopped[n->stopped_n++] = (int)rank;
    }
    for (size_t i = 0; i < json_array_size(silent); i++) {
        long long node;
        const json_t *one = json_array_get(silent, i);
        if (codec_int(one, "node", 0, w->nodes - 1, &node))
            n->silent[n->silent_n++] = (struct waits_silent){(int)node, json_is_true(json_object_get(one, "host"))};
    }
    for (size_t i = 0; i < json_array_size(links); i++) {
        int *link = n->link[n->links];
        link[0] = (int)json_integer_value(json_array_get(json_array_get(links, i), 0));
        link[1] = (int)json_integer_value(json_array_get(json_array_get(links, i), 1));
        n->links++;
    }
}

void waits_report(struct waits *w, int node, const json_t *report, uint64_t now_ns)
{
    long long there = 0;
    if (node < 0 || node >= w->nodes)
        return;
    struct waits_node *n = &w->node[node];
    waits_node_clear(n);
    if (!report || !codec_int(report, "now_ns", 0, INT64_MAX, &there))
        return;
    const json_t *waits = json_object_get(report, "waits");
    n->entry = pm_alloc((json_array_size(waits) + 1) * sizeof *n->entry);
    for (size_t i = 0; i < json_array_size(waits); i++)
        n->entries += read_entry(w, json_array_get(waits, i), (int64_t)now_ns - there, &n->entry[n->entries]);
    read_lists(w, report, n);
}
