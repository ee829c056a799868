/* The grid on which nodes stand: what keelrun's options say of it, and which host gets which number. */
#include "pm/run/options_parts.h"

#include "pm/run/allocation.h"
#include "pm/run/grid_files.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/plural.h"
#include "runtime/topo/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "xyzuvw";

/* ---- what is written ---- */

static void refuse_without_grid(const struct grid_options *g)
{
    const char *useless = g->torus         ? "--torus"
                          : g->spares      ? "--spare-alloc"
                          : g->method      ? "--substitution"
                          : g->moves_given ? "--moves"
                          : g->dead        ? "--dead"
                          : g->positions   ? "--positions"
                                           : NULL;
    if (useless)
        pm_quit(2, "%s is of use only with --grid", useless);
}

static void read_torus(struct grid *g, const char *shape, const char *torus)
{
    bool ring[GRID_MAX_DIMS];
    for (int d = 0; d < g->ndims; d++)
        ring[d] = g->torus[d];
    if (!*torus)
        pm_quit(2, "--torus: no dimension is named, as in --torus xy");
    for (const char *t = torus; *t; t++) {
        const char *letter = memchr(letters, *t, (size_t)g->ndims);
        if (!letter)
            pm_quit(2, "--torus %s: %c is no dimension of the grid %s, which has %.*s", torus, *t, shape, g->ndims,
                    letters);
        if (memchr(torus, *t, (size_t)(t - torus)))
            pm_quit(2, "--torus %s names %c twice", torus, *t);
        ring[letter - letters] = true;
    }
    struct grid mesh = *g;
    (void)grid_init(g, mesh.ndims, mesh.size, ring);
}

static void read_shape(const struct grid_options *said, struct grid *g, struct spare_layout *l)
{
    const char *why = grid_parse(g, said->shape);
    if (why)
        pm_quit(2, "--grid %s: %s", said->shape, why);
    if (g->nodes > LIMIT_NODES)
        pm_quit(2, "--grid %s: a job has %d nodes at most", said->shape, LIMIT_NODES);
    if (said->torus)
        read_torus(g, said->shape, said->torus);
    *l = spare_default(g);
    why = said->spares ? spare_parse(l, said->spares) : NULL;
    if (!why)
        why = spare_check(l, g);
    if (why)
        pm_quit(2, "--spare-alloc %s on the grid %s: %s", said->spares ? said->spares : "of two sides", said->shape,
                why);
}

/* How many letters are to be changed, put in or left out. */
static int difference(const char *a, const char *b)
{
    enum { MOST = 32 };
    int row[MOST + 1], m = (int)strnlen(b, MOST), before, up;
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 0; a[i] && i < MOST; i++) {
        before = row[0]++;
        for (int j = 1; j <= m; j++) {
            up = row[j];
            int best = before + (a[i] != b[j - 1]);
            best = up + 1 < best ? up + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            before = up;
        }
    }
    return row[m];
}

static void check_method(struct place_method *m, const char *text, const struct grid *g)
{
    static const char *const names[] = {
        "0D",      "1D",     "2D",        "3D",   "hybrid(all)", "hybrid(-2D)", "hybrid(2D+0D)",
        "balance", "repair", "repair(8)", "auto", "none",        "user:FILE"};
    enum { NAMES = sizeof names / sizeof names[0] };
    const char *why = strlen(text) < sizeof m->name ? rule_method(m, text, g->ndims) : "it is too long", *near = NULL;
    if (!why)
        return;
    bool is_repair = strncmp(text, "repair(", 7) == 0;
    for (int i = 0, least = (int)strlen(text) / 3 + 1; i < NAMES && !is_repair; i++)
        if (difference(text, names[i]) < least) {
            near = names[i];
            least = difference(text, near);
        }
    if (near && strcmp(near, text) != 0)
        pm_quit(2, "--substitution %s is not known; is %s meant?", text, near);
    pm_quit(2, "--substitution %s: %s; or balance, repair, repair(N), auto, user:FILE, none", text, why);
}

/* Where hosts stand: by the file, or in their order. */
struct standing {
    const char **host; /* [hosts] without users */
    int *place_of;     /* [hosts] */
    struct grid_names names;
};

static void stand_as_told(const struct grid *g, const char *path, struct standing *s)
{
    char why[300], *text = read_whole_file(path);
    if (!grid_positions_parse(&s->names, g->ndims, g->size, text, s->place_of, why, sizeof why))
        pm_quit(2, "%s: %s", path, why);
    free(text);
}

static void find_hosts(const struct options *o, const struct parsing *p, const struct grid *g, struct standing *s)
{
    int hosts = o->hosts.count;
    if (p->grid.positions && !hosts)
        pm_quit(2, "--positions is of use only with hosts: emulated nodes stand anywhere");
    bool told = p->grid.positions || p->grid.place_of;
    if (hosts > g->nodes || (!told && hosts && hosts < g->nodes))
        pm_quit(2, "the grid %s has %d %s, and there %s %d %s", p->grid.shape, g->nodes,
                plural(g->nodes, "place", "places"), plural(hosts, "is", "are"), hosts, plural(hosts, "host", "hosts"));
    *s = (struct standing){.host = pm_alloc((size_t)(hosts + 1) * sizeof *s->host),
                           .place_of = pm_alloc((size_t)(hosts + 1) * sizeof *s->place_of)};
    for (int i = 0; i < hosts; i++) {
        s->host[i] = host_address(o->hosts.names[i]);
        s->place_of[i] = p->grid.place_of ? p->grid.place_of[i] : i;
    }
    s->names = (struct grid_names){.host = s->host, .hosts = hosts, .places = g->nodes, .place_of = s->place_of};
    if (p->grid.positions)
        stand_as_told(g, p->grid.positions, s);
}

static bool is_listed(const struct grid_choice *choice, int place)
{
    for (int i = 0; i < choice->ndead; i++)
        if (choice->dead[i] == place)
            return true;
    return false;
}

/* Places without a host first. */
static void read_dead(struct options *o, const struct grid *g, const char *said, const struct standing *s)
{
    struct grid_choice *choice = &o->job.grid;
    choice->dead = pm_alloc((size_t)g->nodes * sizeof *choice->dead);
    for (int place = 0; place < g->nodes && s->names.hosts; place++) {
        bool taken = false;
        for (int i = 0; i < s->names.hosts; i++)
            taken = taken || s->place_of[i] == place;
        if (!taken)
            choice->dead[choice->ndead++] = place;
    }
    if (!said)
        return;
    char *list = pm_strdup(said), *rest = list, *word;
    while ((word = strsep(&rest, ","))) {
        int place = grid_place_of(&s->names, word);
        if (place < 0)
            pm_quit(2, "--dead: %s is neither a place from 0 to %d nor a host", word, g->nodes - 1);
        if (is_listed(choice, place))
            pm_quit(2, "--dead names %s twice", word);
        choice->dead[choice->ndead++] = place;
    }
    free(list);
}

/* user:FILE; anything else is a method's name. */
static const char *read_plans(struct options *o, const char *method, const struct standing *s)
{
    char why[300];
    if (strcmp(method, "user") == 0 || strcmp(method, "user:") == 0)
        pm_quit(2, "--substitution %s: which file has the plans? user:FILE", method);
    if (strncmp(method, "user:", 5) != 0)
        return method;
    char *text = read_whole_file(method + 5);
    if (!grid_plans_parse(&s->names, text, &o->job.grid.plans, &o->job.grid.nplans, why, sizeof why))
        pm_quit(2, "%s: %s", method + 5, why);
    free(text);
    return "user";
}

/* ---- how many, and who ---- */

/* Nodes that compute: as the user says, else one on each place that is not spare, where there are as many ranks. */
static int count_nodes(const struct options *o, const struct parsing *p, const struct grid_rule *r)
{
    int places = spare_slot_grid(&r->layout, &r->grid).nodes, nodes = places;
    char spares[GRID_TEXT_MAX];
    if (p->nodes_given)
        nodes = o->job.nodes;
    else if (o->ppn && o->job.ranks)
        nodes = (o->job.ranks + o->ppn - 1) / o->ppn;
    if (nodes > places)
        pm_quit(2, "%d %s not fit the grid %s with %s spares: it has places for %d", nodes,
                plural(nodes, "node that computes does", "nodes that compute do"), p->grid.shape,
                spare_format(&r->layout, spares, sizeof spares), places);
    if (p->hosts_given && o->job.ranks && o->job.ranks < nodes && !o->hosts.slots_said)
        nodes = o->job.ranks;
    return nodes;
}

static void check_counts(const struct options *o, const struct parsing *p, const struct grid_rule *r, int nodes)
{
    int spares = r->grid.nodes - nodes - r->ndead;
    if (spares < 0)
        pm_quit(2, "the grid %s with %d dead %s has %d that live, and %d %s to compute", p->grid.shape, r->ndead,
                plural(r->ndead, "node", "nodes"), r->grid.nodes - r->ndead, nodes, plural(nodes, "is", "are"));
    if (p->spares_given && o->job.spares != spares)
        pm_quit(2, "the grid %s has %d %s: with %d %s%s there %s %d %s, not %d", p->grid.shape, r->grid.nodes,
                plural(r->grid.nodes, "place", "places"), nodes,
                plural(nodes, "node that computes", "nodes that compute"), r->ndead ? " and the dead ones" : "",
                plural(spares, "is", "are"), spares, plural(spares, "spare", "spares"), o->job.spares);
}

/* From now on hosts are in the order of their nodes' numbers; those on dead places are none. */
static void order_hosts(struct host_list *hosts, const int *node_at, const int *place_of)
{
    struct host_list was = *hosts;
    hosts->names = pm_alloc((size_t)was.count * sizeof *hosts->names);
    hosts->slots = pm_alloc((size_t)was.count * sizeof *hosts->slots);
    hosts->most = pm_alloc((size_t)was.count * sizeof *hosts->most);
    hosts->count = hosts->summed = 0;
    for (int i = 0; i < was.count; i++) {
        int node = node_at[place_of[i]];
        if (node < 0) {
            free(was.names[i]);
            continue;
        }
        hosts->names[node] = was.names[i];
        hosts->slots[node] = was.slots[i];
        hosts->most[node] = was.most[i];
        hosts->count++;
    }
    free(was.names);
    free(was.slots);
    free(was.most);
}

/* Who has which number. */
static void number_nodes(struct options *o, const struct grid_rule *r, const char *shape, const struct standing *s)
{
    static struct grid_state state; /* its parts point to each other */
    int *node_at = pm_alloc((size_t)r->grid.nodes * sizeof *node_at);
    if (!grid_open(&state, r, o->job.nodes))
        pm_quit(1, "out of memory");
    if (state.place.homeless)
        pm_quit(2, "--substitution %s has no node of the grid %s for %d of %d dead ones", r->method.name, shape,
                state.place.homeless, r->ndead);
    (void)grid_numbers(&state, node_at);
    if (o->hosts.count)
        order_hosts(&o->hosts, node_at, s->place_of);
    grid_close(&state);
    free(node_at);
}

static void set_grid(struct options *o, const struct parsing *p)
{
    struct grid_choice *choice = &o->job.grid;
    struct grid_rule r = {0};
    struct standing s;
    const char *method = p->grid.method ? p->grid.method : "auto";
    read_shape(&p->grid, &r.grid, &r.layout);
    find_hosts(o, p, &r.grid, &s);
    method = read_plans(o, method, &s);
    check_method(&r.method, method, &r.grid);
    read_dead(o, &r.grid, p->grid.dead, &s);
    grid_format(&r.grid, choice->grid, sizeof choice->grid);
    spare_format(&r.layout, choice->spares, sizeof choice->spares);
    snprintf(choice->method, sizeof choice->method, "%s", method);
    const char *why = rule_read(&r, choice);
    if (why)
        pm_quit(2, "--grid %s: %s", p->grid.shape, why);
    int nodes = count_nodes(o, p, &r);
    check_counts(o, p, &r, nodes);
    o->job.nodes = nodes;
    o->job.spares = r.grid.nodes - nodes - r.ndead;
    number_nodes(o, &r, p->grid.shape, &s);
    free(s.host);
    free(s.place_of);
}

void options_grid(struct options *o, const struct parsing *p)
{
    struct parsing known = *p;
    struct grid_found f = {0};
    if (!p->grid.shape) {
        refuse_without_grid(&p->grid);
        return;
    }
    if (strcmp(p->grid.shape, "auto") == 0) {
        options_auto(o, &p->grid, &f);
        known.grid.shape = f.shape;
        known.grid.torus = f.torus;
        known.grid.place_of = f.place_of;
    }
    set_grid(o, &known);
    free(f.place_of);
}
