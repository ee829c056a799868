#include "pm/wire/settings.h"

#include <stdlib.h>

#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/layout.h"

json_t *settings_encode(const struct job_settings *s)
{
    int domains = s->copies.levels * settings_ids(s);
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:i, s:b, s:b, s:i, s:i, s:i, s:o, s:i, s:b, s:o, s:i, s:i, s:i, s:I, "
                     "s:I}",
                     "nodes", s->nodes, "spares", s->spares, "room", s->room, "ranks", s->ranks, "rank_node",
                     codec_ints(s->rank_node, s->ranks), "on_failure", (int)s->on_failure, "degrade_asked",
                     (int)s->degrade_asked, "secure", (int)s->secure, "provider", (int)s->provider, "probe",
                     (int)s->probe, "topology", (int)s->topology, "edges", codec_ints(s->edges, 2 * s->edge_count),
                     "copies_at", (int)s->copies.at, "hosts_told", (int)s->copies.hosts_told, "domains",
                     codec_ints(s->copies.domain, domains), "silence", s->silence_ms, "stopped", s->stopped_ms, "late",
                     s->late_ms, "range_base", (json_int_t)s->range.base, "range_bytes", (json_int_t)s->range.bytes);
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

/* As many numbers as there are nodes, for each level. */
static bool copies(const json_t *object, int members, struct copy_rule *out)
{
    const json_t *domains = json_object_get(object, "domains");
    size_t n = json_array_size(domains);
    int at;
    if (!number(object, "copies_at", COPIES_AT_HALF, COPIES_AT_NEXT, &at) ||
        !yes_or_no(object, "hosts_told", &out->hosts_told) || !json_is_array(domains) || n % (size_t)members ||
        n / (size_t)members > DOMAIN_LEVELS_MAX)
        return false;
    out->at = (enum copies_at)at;
    out->levels = (int)(n / (size_t)members);
    out->domain = pm_alloc((n ? n : 1) * sizeof *out->domain);
    return codec_to_ints(domains, out->domain, (int)n, 0, 2 * LAYOUT_MAX_NODES - 1);
}

bool settings_decode(struct job_settings *s, const json_t *object)
{
    *s = (struct job_settings){0};
    const json_t *edges = json_object_get(object, "edges");
    int on_failure, provider, probe, topology;
    if (!number(object, "nodes", 1, LAYOUT_MAX_NODES, &s->nodes) ||
        !number(object, "spares", 0, LAYOUT_MAX_NODES, &s->spares) ||
        !number(object, "room", 0, LAYOUT_MAX_NODES, &s->room) ||
        !number(object, "ranks", 1, LAYOUT_MAX_RANKS, &s->ranks) ||
        !number(object, "on_failure", VIEW_SUBSTITUTE, VIEW_ABORT, &on_failure) ||
        !yes_or_no(object, "degrade_asked", &s->degrade_asked) || !yes_or_no(object, "secure", &s->secure) ||
        !number(object, "provider", PROVIDER_TCP, PROVIDER_AUTO, &provider) ||
        !number(object, "probe", PROBE_AUTO, PROBE_OFI, &probe) ||
        !number(object, "topology", MEMBER_RING, MEMBER_FILE, &topology) ||
        !number(object, "silence", SILENCE_MIN_MS, SILENCE_MAX_MS, &s->silence_ms) ||
        !number(object, "stopped", STOPPED_NEVER_MS, STOPPED_MAX_MS, &s->stopped_ms) ||
        !number(object, "late", 1, LATE_MAX_MS, &s->late_ms) || !range(object, &s->range) || !json_is_array(edges) ||
        json_array_size(edges) % 2 || json_array_size(edges) > 2 * (size_t)LAYOUT_MAX_NODES * WATCHERS_MAX)
        return false;
    s->on_failure = (enum view_policy)on_failure;
    s->provider = (enum provider_choice)provider;
    s->probe = (enum probe_choice)probe;
    s->topology = (enum member_topology)topology;
    int values = (int)json_array_size(edges);
    s->rank_node = pm_alloc((size_t)s->ranks * sizeof *s->rank_node);
    s->edges = pm_alloc((size_t)(values ? values : 1) * sizeof *s->edges);
    s->edge_count = values / 2;
    return copies(object, settings_ids(s), &s->copies) &&
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
            domain[level * ids + m] = m < begun ? rule->domain[level * stride + m] : LAYOUT_MAX_NODES + m - begun;
    free(rule->domain);
    rule->domain = domain;
}

void settings_free(struct job_settings *s)
{
    free(s->rank_node);
    free(s->edges);
    free(s->copies.domain);
    s->rank_node = s->edges = s->copies.domain = NULL;
}
