/* The grid on which nodes stand: what keelrun's options say of it, and which host gets which number. */
#include "pm/run/options_parts.h"

#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/topo/rule.h"

#include <ctype.h>
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
        ring[letter - letters] = true;
    }
    struct grid mesh = *g;
    (void)grid_init(g, mesh.ndims, mesh.size, ring);
}

/* One layer on each of the first two sides that are longer than one node: as keel-place has it. */
static struct spare_layout default_layout(const struct grid *g)
{
    struct spare_layout l = {.q = g->ndims, .s = 1};
    for (int d = 0; d < g->ndims && l.r < 2; d++)
        if (g->size[d] > 1) {
            l.dims |= 1u << d;
            l.r++;
        }
    if (l.dims == (1u << l.r) - 1)
        l.dims = 0;
    return l;
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
    *l = default_layout(g);
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
        "balance", "repair", "repair(8)", "auto", "none"};
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
    pm_quit(2, "--substitution %s: %s; or balance, repair, repair(N), auto, none", text, why);
}

/* A number, or a host's name. */
static int read_place(const struct options *o, const struct grid *g, const char *text)
{
    char *end;
    long place = strtol(text, &end, 10);
    if (isdigit((unsigned char)*text) && !*end && place < g->nodes)
        return (int)place;
    for (int i = 0; i < o->hosts.count; i++)
        if (strcmp(text, host_address(o->hosts.names[i])) == 0)
            return i;
    pm_quit(2, "--dead: %s is neither a place from 0 to %d nor a host", text, g->nodes - 1);
}

static void read_dead(struct options *o, const struct grid *g, const char *said)
{
    struct grid_choice *choice = &o->job.grid;
    choice->dead = pm_alloc((size_t)g->nodes * sizeof *choice->dead);
    if (!said)
        return;
    char *list = pm_strdup(said), *rest = list, *word;
    while ((word = strsep(&rest, ","))) {
        int place = read_place(o, g, word);
        for (int i = 0; i < choice->ndead; i++)
            if (choice->dead[i] == place)
                pm_quit(2, "--dead names %s twice", word);
        choice->dead[choice->ndead++] = place;
    }
    free(list);
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
        pm_quit(2, "%d nodes that compute do not fit the grid %s with %s spares: it has places for %d", nodes,
                p->grid.shape, spare_format(&r->layout, spares, sizeof spares), places);
    if (p->hosts_given && o->job.ranks && o->job.ranks < nodes && !o->hosts.slots_said)
        nodes = o->job.ranks;
    return nodes;
}

static void check_counts(const struct options *o, const struct parsing *p, const struct grid_rule *r, int nodes)
{
    int spares = r->grid.nodes - nodes - r->ndead;
    if (p->hosts_given && o->hosts.count != r->grid.nodes)
        pm_quit(2, "the grid %s has %d places, and there are %d hosts", p->grid.shape, r->grid.nodes, o->hosts.count);
    if (spares < 0)
        pm_quit(2, "the grid %s with %d dead nodes has %d that live, and %d are to compute", p->grid.shape, r->ndead,
                r->grid.nodes - r->ndead, nodes);
    if (p->spares_given && o->job.spares != spares)
        pm_quit(2, "the grid %s has %d places: with %d nodes that compute%s there are %d spares, not %d", p->grid.shape,
                r->grid.nodes, nodes, r->ndead ? " and the dead ones" : "", spares, o->job.spares);
}

/* Hosts have the places in their order; from now on they are in that of their nodes' numbers. */
static void order_hosts(struct host_list *hosts, const int *node_at, int places)
{
    struct host_list was = *hosts;
    hosts->names = pm_alloc((size_t)places * sizeof *hosts->names);
    hosts->slots = pm_alloc((size_t)places * sizeof *hosts->slots);
    hosts->most = pm_alloc((size_t)places * sizeof *hosts->most);
    hosts->count = 0;
    for (int g = 0; g < places; g++) {
        int node = node_at[g];
        if (node < 0) {
            free(was.names[g]);
            continue;
        }
        hosts->names[node] = was.names[g];
        hosts->slots[node] = was.slots[g];
        hosts->most[node] = was.most[g];
        hosts->count++;
    }
    free(was.names);
    free(was.slots);
    free(was.most);
}

/* Who has which number. */
static void number_nodes(struct options *o, const struct grid_rule *r, const char *shape)
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
        order_hosts(&o->hosts, node_at, r->grid.nodes);
    grid_close(&state);
    free(node_at);
}

void options_grid(struct options *o, const struct parsing *p)
{
    struct grid_choice *choice = &o->job.grid;
    struct grid_rule r = {0};
    const char *method = p->grid.method ? p->grid.method : "auto";
    if (!p->grid.shape) {
        refuse_without_grid(&p->grid);
        return;
    }
    read_shape(&p->grid, &r.grid, &r.layout);
    check_method(&r.method, method, &r.grid);
    read_dead(o, &r.grid, p->grid.dead);
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
    number_nodes(o, &r, p->grid.shape);
}
