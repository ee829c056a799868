#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/plural.h"
#include "runtime/topo/lines.h"
#include "sim/place/options.h"

static const char *result_name(enum place_result r)
{
    static const char *const names[] = {
        [PLACE_MOVED] = "moved", [PLACE_IDLE] = "idle", [PLACE_REPEAT] = "repeated", [PLACE_CANNOT] = "cannot"};
    return names[r];
}

static const char *step_name(const struct job *j, char *buf, size_t len)
{
    if (job_order(j) == PLACE_OWN)
        return j->method.name;
    snprintf(buf, len, "%dD", job_order(j));
    return buf;
}

static char *node_text(const struct grid *g, int32_t node, char *buf, size_t len)
{
    size_t n = 0;
    for (int d = 0; d < g->ndims && n < len; d++)
        n += (size_t)snprintf(buf + n, len - n, "%s%d", d ? "," : "", grid_coord(g, node, d));
    return buf;
}

/* Links with each number of messages, from 1 up: "1:80 2:6 5:1". */
static char *distribution(const struct load *l, char *buf, size_t len)
{
    size_t n = 0;
    int32_t top = 0;
    for (int32_t ph = 0; ph < l->pattern->phases; ph++)
        top = l->phase[ph].max > top ? l->phase[ph].max : top;
    buf[0] = '\0';
    for (int32_t c = 1; c <= top && n + 32 < len; c++) {
        int64_t links = 0;
        for (int32_t ph = 0; ph < l->pattern->phases; ph++)
            links += c <= l->phase[ph].max ? l->phase[ph].hist[c] : 0;
        if (links)
            n += (size_t)snprintf(buf + n, len - n, "%s%d:%lld", n ? " " : "", c, (long long)links);
    }
    return buf;
}

/* What carrying out the plan costs, with slots of so many bytes. */
static struct lines_cost cost_of(struct lines *l, const struct job *j, int64_t bytes)
{
    lines_of_plan(l, &j->plan);
    struct lines_cost c = lines_cost(l, NULL);
    c.bytes *= bytes;
    c.one_by_one *= bytes;
    c.pipelined *= bytes;
    return c;
}

static json_t *as_json(const struct job *j, int32_t node, enum place_result got, double us, const struct lines_cost *c)
{
    char step[16], dist[512];
    json_t *moves = json_array();
    for (int32_t i = 0; i < j->plan.count; i++)
        json_array_append_new(moves, json_pack("{s:i, s:i, s:i}", "slot", j->plan.moves[i].slot, "from",
                                               j->plan.moves[i].from, "to", j->plan.moves[i].to));
    return json_pack("{s:i, s:s, s:s, s:i, s:f, s:s, s:f, s:b, s:i, s:i, s:I, s:I, s:I, s:o}", "node", node, "result",
                     result_name(got), "by", got == PLACE_MOVED ? step_name(j, step, sizeof step) : "", "collisions",
                     load_collisions(&j->load), "mean", load_mean(&j->load), "links",
                     distribution(&j->load, dist, sizeof dist), "microseconds", us, "bounded", j->plan.bounded, "lines",
                     c->lines, "longest", c->longest, "bytes", (json_int_t)c->bytes, "one_by_one",
                     (json_int_t)c->one_by_one, "pipelined", (json_int_t)c->pipelined, "moves", moves);
}

static void as_text(FILE *f, const struct job *j, int32_t node, enum place_result got, double us, int64_t bytes,
                    const struct lines_cost *c)
{
    char a[64], b[64], step[16], dist[512];
    const struct grid *g = &j->place.grid;
    fprintf(f, "node %s: %s", node_text(g, node, a, sizeof a), result_name(got));
    if (got == PLACE_MOVED) {
        fprintf(f, " by %s, %d %s", step_name(j, step, sizeof step), j->plan.count,
                plural(j->plan.count, "move", "moves"));
        for (int32_t i = 0; i < j->plan.count && i < 4; i++)
            fprintf(f, "%s slot %d %s->%s", i ? ";" : ":", j->plan.moves[i].slot,
                    node_text(g, j->plan.moves[i].from, a, sizeof a), node_text(g, j->plan.moves[i].to, b, sizeof b));
        if (j->plan.count > 4)
            fputs("; ...", f);
        fprintf(f, "\n  %d %s side by side, the longest of %d", c->lines, plural(c->lines, "line", "lines"),
                c->longest);
        if (bytes)
            fprintf(f, "; %lld %s, one by one %lld, pipelined %lld", (long long)c->bytes,
                    plural(c->bytes, "byte", "bytes"), (long long)c->one_by_one, (long long)c->pipelined);
        if (j->plan.bounded)
            fputs("; the bound on moves left out what has more", f);
    }
    fprintf(f, "\n  collisions %d, mean %.3f, links by messages %s (%.0f us)\n", load_collisions(&j->load),
            load_mean(&j->load), distribution(&j->load, dist, sizeof dist), us);
}

static void as_csv(FILE *f, const struct job *j, int32_t node, enum place_result got, const struct lines *l)
{
    char step[16];
    if (!j->plan.count)
        fprintf(f, "%d,%s,,%d,,,,\n", node, result_name(got), load_collisions(&j->load));
    for (int32_t k = 0; k < l->lines; k++)
        for (const struct place_move *m = l->move + l->first[k]; m < l->move + l->first[k + 1]; m++)
            fprintf(f, "%d,%s,%s,%d,%d,%d,%d,%d\n", node, result_name(got), step_name(j, step, sizeof step),
                    load_collisions(&j->load), m->slot, m->from, m->to, k);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

int cmd_substitute(int argc, char **argv)
{
    static struct options o;
    struct job j;
    struct out out;
    options_parse(
        &o, "substitute",
        "What happens when nodes die, one after another: the moves, the collisions, the messages on the links.",
        "gsSmTbzBpcFfdPNojv", argc, argv);
    options_setup(&o);
    if (o.methods > 1)
        cli_die("one method at a time");
    if (!o.nfail)
        cli_die("--fail is missing: which node dies?");
    if (o.nfail > o.setup.grid.nodes)
        cli_die("more failures (%d) than nodes (%d)", o.nfail, o.setup.grid.nodes);
    int32_t *node = calloc((size_t)o.nfail + 1, sizeof *node);
    struct lines lines;
    if (!node || !job_open(&j, &o.setup) || !lines_init(&lines, &j.place))
        cli_die("out of memory");
    for (int32_t i = 0; i < o.nfail; i++)
        node[i] = options_node(&o, o.fail[i]);
    int at[GRID_MAX_DIMS];
    draw_plane_parse(&o, o.plane, at);
    if (!o.plane && o.nfail)
        for (int d = 2; d < o.setup.grid.ndims; d++)
            at[d] = grid_coord(&o.setup.grid, node[0], d);
    for (int32_t i = 0; i < o.ndead; i++)
        job_fail(&j, o.dead_node[i]);
    job_launch(&j);
    out_open(&out, o.out);
    json_t *list = json_array();
    if (o.format == FORMAT_CSV)
        fputs("node,result,by,collisions,slot,from,to,line\n", out.f);
    bool cannot = false;
    for (int32_t i = 0; i < o.nfail; i++) {
        double start = now_us();
        enum place_result got = job_fail(&j, node[i]);
        double us = now_us() - start;
        cannot |= got == PLACE_CANNOT;
        struct lines_cost cost = cost_of(&lines, &j, o.bytes ? o.bytes : 1);
        if (o.format == FORMAT_CSV)
            as_csv(out.f, &j, node[i], got, &lines);
        else if (o.format == FORMAT_JSON)
            json_array_append_new(list, as_json(&j, node[i], got, us, &cost));
        else
            as_text(out.f, &j, node[i], got, us, o.bytes, &cost);
    }
    if (o.format == FORMAT_JSON) {
        json_dumpf(list, out.f, JSON_COMPACT);
        fputc('\n', out.f);
    } else if (o.format == FORMAT_TEXT && !o.no_draw && o.setup.grid.size[0] <= 120)
        draw_plane(out.f, &j, at);
    out_commit(&out);
    json_decref(list);
    free(node);
    lines_fini(&lines);
    job_close(&j);
    return cannot ? 1 : 0;
}
