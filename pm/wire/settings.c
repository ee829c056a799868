#include "pm/wire/settings.h"

#include <stdlib.h>
#include <string.h>

#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/layout.h"

static json_t *grid_encode(const struct job_settings *s)
{
    const struct grid_choice *g = &s->grid;
    if (!settings_on_grid(s))
        return json_null();
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "nodes", g->grid, "spares", g->spares, "method", g->method,
                     "moves", g->moves, "dead", codec_ints(g->dead, g->ndead), "plans",
                     codec_ints(g->plans, g->nplans));
}

static json_t *rails_json(const struct rail_list *rails)
{
    json_t *list = json_array();
    for (int i = 0; i < rails->n; i++)
        json_array_append_new(list, json_string(rails->name[i]));
    return list;
}

static bool rails_of(const json_t *object, struct rail_list *out)
{
    const json_t *list = json_object_get(object, "rails");
    if (!json_is_array(list) || json_array_size(list) > RAILS_MAX)
        return false;
    for (out->n = 0; out->n < (int)json_array_size(list); out->n++) {
        const char *name = json_string_value(json_array_get(list, (size_t)out->n));
        if (!name || !rails_name_good(name))
            return false;
        strcpy(out->name[out->n], name);
    }
    return true;
}

static json_t *inject_json(const struct flip_rules *rules)
{
    char text[FLIP_TEXT_MAX];
    json_t *list = json_array();
    for (int i = 0; i < rules->n; i++)
        json_array_append_new(list, json_string(flip_rule_text(&rules->rule[i], text)));
    return list;
}

static bool inject_of(const json_t *object, struct flip_rules *out)
{
    const json_t *list = json_object_get(object, "inject");
    char why[128];
    if (!json_is_array(list) || json_array_size(list) > FLIP_RULES_MAX)
        return false;
    for (out->n = 0; out->n < (int)json_array_size(list); out->n++) {
        const char *text = json_string_value(json_array_get(list, (size_t)out->n));
        if (!text || !flip_rule_parse(text, &out->rule[out->n], why, sizeof why))
            return false;
    }
    return true;
}

json_t *settings_replicas(const struct replica_map *m)
{
    if (!replica_map_is_used(m))
        return json_null();
    return json_pack("{s:i, s:o}", "sets", m->replicas, "native", codec_ints(m->native, replica_map_natives(m)));
}

json_t *settings_encode(const struct job_settings *s)
{
    int domains = s->copies.levels * settings_ids(s);
    json_t *m = json_pack(
        "{s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "nodes", s->nodes, "spares", s->spares,
        "room", s->room, "ranks", s->ranks, "rank_node", codec_ints(s->rank_node, s->ranks), "edges",
        codec_ints(s->edges, 2 * s->edge_count), "domains", codec_ints(s->copies.domain, domains), "grid",
        grid_encode(s), "range_base", (json_int_t)s->range.base, "range_bytes", (json_int_t)s->range.bytes, "rails",
        rails_json(&s->rails), "inject", inject_json(&s->inject), "replicas", settings_replicas(&s->replicas));
#define PUT_NUMBER(member, key, low, high) json_object_set_new(m, key, json_integer(s->member));
#define PUT_FLAG(member, key) json_object_set_new(m, key, json_boolean(s->member));
#define PUT_CHOICE(member, key, last) json_object_set_new(m, key, json_integer((int)s->member));
    JOB_SETTINGS_LIST(PUT_NUMBER, PUT_FLAG, PUT_CHOICE)
    return m;
}

static bool range(const json_t *object, struct address_range *out)
{
    long long base, bytes;
    if (!codec_int(object, "range_base", 0, INT64_MAX, &base) ||
        !codec_int(object, "range_bytes", 0, INT64_MAX - base, &bytes))
        return false;
    *out = (struct address_range){(uint64_t)base, (uint64_t)bytes};
    return true;
}

/* A whole number of the range, into an int. */
static bool number(const json_t *object, const char *key, int low, int high, int *out)
{
    long long value;
    if (!codec_int(object, key, low, high, &value))
        return false;
    *out = (int)value;
    return true;
}

static bool yes_or_no(const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_true(value);
    return json_is_boolean(value);
}

static bool one_values(struct job_settings *s, const json_t *object)
{
    int choice;
#define TAKE_NUMBER(member, key, low, high)                                                                            \
    if (!number(object, key, low, high, &s->member))                                                                   \
        return false;
#define TAKE_FLAG(member, key)                                                                                         \
    if (!yes_or_no(object, key, &s->member))                                                                           \
        return false;
#define TAKE_CHOICE(member, key, last)                                                                                 \
    if (!number(object, key, 0, last, &choice))                                                                        \
        return false;                                                                                                  \
    s->member = (__typeof__(s->member))choice;
    JOB_SETTINGS_LIST(TAKE_NUMBER, TAKE_FLAG, TAKE_CHOICE)
    return true;
}

/* As many numbers as there are nodes, for each level. */
static bool domains(const json_t *object, int members, struct copy_rule *out)
{
    const json_t *list = json_object_get(object, "domains");
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n % (size_t)members || n / (size_t)members > DOMAIN_LEVELS_MAX)
        return false;
    out->levels = (int)(n / (size_t)members);
    out->domain = pm_alloc((n ? n : 1) * sizeof *out->domain);
    return codec_to_ints(list, out->domain, (int)n, 0, 2 * LIMIT_NODES - 1);
}

static bool text(const json_t *object, const char *key, char out[GRID_TEXT_MAX])
{
    const json_t *value = json_object_get(object, key);
    size_t len = json_string_length(value);
    if (!json_is_string(value) || len == 0 || len >= GRID_TEXT_MAX || strlen(json_string_value(value)) != len)
        return false;
    memcpy(out, json_string_value(value), len + 1);
    return true;
}

/* null: none. What the texts mean is the reader's matter. */
static bool grid(const json_t *object, struct grid_choice *out)
{
    const json_t *said = json_object_get(object, "grid"), *dead = json_object_get(said, "dead"),
                 *plans = json_object_get(said, "plans");
    size_t ndead = json_array_size(dead), nplans = json_array_size(plans);
    if (json_is_null(said))
        return true;
    if (!text(said, "nodes", out->grid) || !text(said, "spares", out->spares) || !text(said, "method", out->method) ||
        !number(said, "moves", 0, GRID_MOVES_MAX, &out->moves) || !json_is_array(dead) || ndead > LIMIT_NODES ||
        !json_is_array(plans) || nplans > GRID_PLANS_MAX)
        return false;
    out->dead = pm_alloc((ndead ? ndead : 1) * sizeof *out->dead);
    out->ndead = (int)ndead;
    out->plans = pm_alloc((nplans ? nplans : 1) * sizeof *out->plans);
    out->nplans = (int)nplans;
    return codec_to_ints(dead, out->dead, out->ndead, 0, LIMIT_NODES - 1) &&
           codec_to_ints(plans, out->plans, out->nplans, 0, LIMIT_NODES);
}

/* null: none. */
static bool replicas(const json_t *object, int natives, struct replica_map *out)
{
    const json_t *said = json_object_get(object, "replicas");
    int sets;
    if (json_is_null(said))
        return true;
    if (!number(said, "sets", 2, REPLICAS_MAX, &sets) || natives % sets)
        return false;
    int *native = pm_alloc((size_t)natives * sizeof *native);
    bool good = codec_to_ints(json_object_get(said, "native"), native, natives, 0, natives - 1) &&
                replica_map_init_from(out, natives / sets, sets, native);
    free(native);
    return good;
}

bool settings_decode(struct job_settings *s, const json_t *object)
{
    *s = (struct job_settings){0};
    const json_t *edges = json_object_get(object, "edges");
    if (!number(object, "nodes", 1, LIMIT_NODES, &s->nodes) || !number(object, "spares", 0, LIMIT_NODES, &s->spares) ||
        !number(object, "room", 0, LIMIT_NODES, &s->room) || settings_ids(s) > LIMIT_NODES ||
        !number(object, "ranks", 1, LIMIT_RANKS, &s->ranks) || !one_values(s, object) || !range(object, &s->range) ||
        !rails_of(object, &s->rails) || !inject_of(object, &s->inject) || !json_is_array(edges) ||
        json_array_size(edges) % 2 || json_array_size(edges) > 2 * (size_t)LIMIT_NODES * WATCHERS_MAX)
        return false;
    int values = (int)json_array_size(edges);
    s->rank_node = pm_alloc((size_t)s->ranks * sizeof *s->rank_node);
    s->edges = pm_alloc((size_t)(values ? values : 1) * sizeof *s->edges);
    s->edge_count = values / 2;
    return domains(object, settings_ids(s), &s->copies) && grid(object, &s->grid) &&
           replicas(object, s->ranks, &s->replicas) &&
           codec_to_ints(json_object_get(object, "rank_node"), s->rank_node, s->ranks, 0, s->nodes - 1) &&
           codec_to_ints(edges, s->edges, values, 0, s->nodes + s->spares - 1);
}

void settings_make_room(struct job_settings *s, int stride)
{
    struct copy_rule *rule = &s->copies;
    int begun = s->nodes + s->spares, ids = settings_ids(s);
    int *domain = pm_alloc((size_t)(rule->levels * ids + 1) * sizeof *domain);
    for (int level = 0; level < rule->levels; level++)
        for (int m = 0; m < ids; m++)
            domain[level * ids + m] = m < begun ? rule->domain[level * stride + m] : LIMIT_NODES + m - begun;
    free(rule->domain);
    rule->domain = domain;
}

void settings_free(struct job_settings *s)
{
    free(s->rank_node);
    free(s->edges);
    free(s->copies.domain);
    free(s->grid.dead);
    free(s->grid.plans);
    replica_map_fini(&s->replicas);
    s->rank_node = s->edges = s->copies.domain = s->grid.dead = s->grid.plans = NULL;
}
