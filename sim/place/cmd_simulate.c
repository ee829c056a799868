#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/plural.h"
#include "sim/place/options.h"
#include "sim/place/worst.h"

static json_t *row_json(const struct sample_row *w, int32_t failures)
{
    return json_pack("{s:i, s:I, s:I, s:f, s:I, s:f, s:f}", "failures", failures, "cases", (json_int_t)w->cases,
                     "worst", (json_int_t)w->worst, "mean", (double)w->collisions / (double)w->cases, "best",
                     (json_int_t)w->best, "mean_load", (double)w->mean_load / 1e6 / (double)w->cases, "moves",
                     (double)w->moves / (double)w->cases);
}

static json_t *sample_json(const struct sample_config *c, const struct sample_result *r)
{
    json_t *rows = json_array();
    for (int32_t i = 0; i <= r->failures; i++)
        if (r->row[i].cases)
            json_array_append_new(rows, row_json(&r->row[i], i));
    return json_pack("{s:s, s:I, s:I, s:b, s:o}", "method", c->setup.method, "seed", (json_int_t)c->seed, "sequences",
                     (json_int_t)r->done, "complete", !r->interrupted, "rows", rows);
}

static void print_text(FILE *f, const struct sample_config *c, const struct sample_result *r)
{
    fprintf(f, "%s: %" PRId64 " of %" PRId64 " %s of up to %d %s\n", c->setup.method, r->done, r->sequences,
            plural(r->sequences, "sequence", "sequences"), r->failures, plural(r->failures, "failure", "failures"));
    fputs("failures      cases  worst    mean  best   moves\n", f);
    for (int64_t i = 0, shown = 0; i <= r->failures; i++) {
        const struct sample_row *w = &r->row[i];
        if (!w->cases || (i > 10 && i < r->failures && i * 20 / r->failures == shown))
            continue;
        shown = i > 0 ? i * 20 / r->failures : 0; /* without spares there are no failures */
        fprintf(f, "%8" PRId64 " %10" PRId64 " %6" PRId64 " %7.3f %5" PRId64 " %7.1f\n", i, w->cases, w->worst,
                (double)w->collisions / (double)w->cases, w->best, (double)w->moves / (double)w->cases);
    }
}

static json_t *worst_json(const struct worst_config *c, const struct worst_result *r)
{
    json_t *rows = json_array();
    for (int32_t f = 1; f <= c->failures; f++) {
        json_t *nodes = json_array();
        for (int32_t i = 0; i < f; i++)
            json_array_append_new(nodes, json_integer(r->nodes[f][i]));
        if (r->collisions[f] >= 0)
            json_array_append_new(
                rows, json_pack("{s:i, s:i, s:o}", "failures", f, "worst", r->collisions[f], "nodes", nodes));
        else
            json_decref(nodes);
    }
    return json_pack("{s:s, s:I, s:b, s:o}", "method", c->setup.method, "maps", (json_int_t)r->maps, "proven",
                     !r->interrupted, "rows", rows);
}

static void worst_csv(FILE *f, const struct worst_config *c, const struct worst_result *r)
{
    for (int32_t n = 1; n <= c->failures; n++) {
        if (r->collisions[n] < 0)
            continue;
        fprintf(f, "%s,%d,%d,", c->setup.method, n, r->collisions[n]);
        for (int32_t i = 0; i < n; i++)
            fprintf(f, "%s%d", i ? " " : "", r->nodes[n][i]);
        fputc('\n', f);
    }
}

static void check_worst(const struct options *o)
{
    static const struct {
        char letter;
        const char *name;
    } none[] = {{'n', "--cases"}, {'r', "--seed"}, {'l', "--links"}};
    options_useless(o, "b", "on --worst, which searches methods without a bound");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (o->given[(int)none[i].letter])
            cli_die("%s has no meaning with --worst, which looks at every sequence", none[i].name);
    if (!o->failures || o->failures > WORST_MAX)
        cli_die("--worst needs --failures from 1 to %d", WORST_MAX);
    for (int i = 0; i < o->methods; i++)
        if (setup_is_own(o->method[i]))
            cli_die("--worst is for the sliding methods, not for %s", o->method[i]);
    if (o->draw == DRAW_JOB && o->failures > spare_slot_grid(&o->setup.layout, &o->setup.grid).nodes)
        cli_die("more failures (%d) than nodes with a slot", o->failures);
    if (o->failures > o->setup.grid.nodes)
        cli_die("more failures (%d) than nodes (%d)", o->failures, o->setup.grid.nodes);
}

static const char *state_name(const struct options *o, int i, char *buf, size_t len)
{
    if (!o->out)
        return NULL;
    if ((size_t)snprintf(buf, len, o->methods > 1 ? "%s.%d.state" : "%s.state", o->out, i) >= len)
        cli_die("the file name is too long");
    return buf;
}

/* Of several methods those that had finished or not begun have no state; but one of them must. */
static void check_states(const struct options *o)
{
    static char state[OUT_PATH];
    bool any = false;
    for (int i = 0; i < o->methods; i++)
        any = any || access(state_name(o, i, state, sizeof state), R_OK) == 0;
    if (!any)
        cli_die("--resume: there is no state of an interrupted run beside %s", o->out);
}

/* What there is to say about a search, on standard error. */
static void tell_worst(const struct options *o, const struct worst_config *c, const struct worst_result *r)
{
    fprintf(stderr, "%s: %" PRId64 " %s looked at, of %.3g sequences; %" PRId64 " ended early%s\n", c->setup.method,
            r->maps, plural(r->maps, "map", "maps"), r->sequences, r->cannot,
            r->interrupted ? "; interrupted, the numbers are lower bounds" : "");
    if (r->full)
        fprintf(stderr, "%s: not all maps met could be kept (--memory %" PRId64 "), some were followed again%s\n",
                c->setup.method, o->memory, r->interrupted ? "" : "; the result is whole");
    if (r->interrupted && o->out)
        fprintf(stderr, "keel-place simulate: --resume goes on\n");
}

static int run_worst(const struct options *o)
{
    struct worst_result r = {0};
    struct out out;
    static char state[OUT_PATH];
    json_t *list = json_array();
    check_worst(o);
    out_open(&out, o->out);
    cli_catch_signals();
    for (int i = 0; i < o->methods && !r.interrupted; i++) {
        struct worst_config c = {.setup = o->setup,
                                 .failures = o->failures,
                                 .draw = o->draw,
                                 .full = o->full,
                                 .dead = o->dead_node,
                                 .ndead = o->ndead,
                                 .threads = o->threads,
                                 .memory = (size_t)o->memory << 20,
                                 .resume = o->resume,
                                 .progress = true,
                                 .stop = &cli_stop};
        strcpy(c.setup.method, o->method[i]);
        c.label = c.setup.method;
        c.state = state_name(o, i, state, sizeof state);
        if (c.resume && o->methods > 1 && access(c.state, R_OK) != 0)
            c.resume = false; /* this method had finished or not begun */
        const char *why = worst_run(&c, &r);
        if (why)
            cli_die("%s%s%s", why, c.resume ? ": " : "", c.resume ? c.state : "");
        if (o->format == FORMAT_JSON)
            json_array_append_new(list, worst_json(&c, &r));
        else {
            fputs(i ? "" : "method,failures,worst,nodes\n", out.f);
            worst_csv(out.f, &c, &r);
        }
        tell_worst(o, &c, &r);
    }
    if (o->format == FORMAT_JSON) {
        json_dumpf(list, out.f, JSON_COMPACT);
        fputc('\n', out.f);
    }
    json_decref(list);
    out_commit(&out);
    return r.interrupted ? 130 : 0;
}

/* Before a file is opened. */
static void check_sample(const struct options *o)
{
    if (o->links && o->methods > 1)
        cli_die("--links is for one method at a time");
    if (o->failures > o->setup.grid.nodes)
        cli_die("more failures (%d) than nodes (%d)", o->failures, o->setup.grid.nodes);
    if (o->ndead && o->draw == DRAW_ACTIVE && o->ndead >= o->setup.grid.nodes)
        cli_die("more failures (%d) than nodes (%d)", o->ndead, o->setup.grid.nodes);
}

static void say_done(const char *method, const struct sample_result *r)
{
    fprintf(stderr, "%s: %" PRId64 " %s in %.1f s, %.0f cases per second%s\n", method, r->cases,
            plural(r->cases, "case", "cases"), r->seconds, (double)r->cases / r->seconds,
            r->interrupted ? "; interrupted" : "");
}

static int run_sample(struct options *o)
{
    struct out out, links = {0};
    static char state[4096];
    check_sample(o);
    out_open(&out, o->out);
    if (o->links)
        out_open(&links, o->links);
    cli_catch_signals();
    bool interrupted = false, resumable = true;
    json_t *list = json_array();
    for (int i = 0; i < o->methods && !interrupted; i++) {
        struct sample_config c = {.setup = o->setup,
                                  .dead = o->dead_node,
                                  .ndead = o->ndead,
                                  .seed = o->seed,
                                  .cases = o->cases,
                                  .failures = o->failures,
                                  .threads = o->threads,
                                  .draw = o->draw,
                                  .links = o->links,
                                  .progress = true,
                                  .resume = o->resume};
        struct sample_result r;
        strcpy(c.setup.method, o->method[i]);
        c.label = c.setup.method;
        c.state = state_name(o, i, state, sizeof state);
        if (c.resume && o->methods > 1 && access(c.state, R_OK) != 0)
            c.resume = false; /* this method had finished or not begun */
        const char *why = sample_run(&c, &cli_stop, &r);
        if (why)
            cli_die("%s%s%s", why, c.state ? ": " : "", c.state ? c.state : "");
        if (o->format == FORMAT_JSON)
            json_array_append_new(list, sample_json(&c, &r));
        else if (o->format == FORMAT_CSV || o->out)
            out_csv(out.f, &c, &r);
        else
            print_text(out.f, &c, &r);
        if (o->links)
            out_links(links.f, &r);
        say_done(c.setup.method, &r);
        interrupted = r.interrupted;
        resumable = !r.unsaved;
        if (r.unsaved)
            fprintf(stderr, "keel-place simulate: %s: %s; --resume cannot go on\n", c.state, r.unsaved);
        sample_free(&r);
    }
    if (o->format == FORMAT_JSON) { /* an object for one method, a list for several */
        json_dumpf(o->methods > 1 ? list : json_array_get(list, 0), out.f, JSON_COMPACT);
        fputc('\n', out.f);
    }
    json_decref(list);
    out_commit(&out);
    if (o->links)
        out_commit(&links);
    if (interrupted)
        fprintf(stderr, "keel-place simulate: the result so far is whole sequences only%s\n",
                o->out && resumable ? "; --resume continues it" : "");
    return interrupted ? 130 : 0;
}

int cmd_simulate(int argc, char **argv)
{
    static struct options o;
    options_parse(
        &o, "simulate",
        "Random sequences of failures, and the worst, mean and best number of messages on the most used link after "
        "each. A case is one map: the state after one failure.\vCounting: a collision count of c means that c "
        "messages cross the most used directed link when every slot sends all messages of the pattern at once; 1 "
        "is no collision. Patterns of several phases add the maxima of their phases. --count received leaves out "
        "messages sent by slots that are not on their first node, under which the published laws for 0D hold "
        "from the first failure on; with all messages counted one failure gives 5.",
        "gsSmTbpcFdnkrtDolRwuMjv", argc, argv);
    options_setup(&o);
    if (o.full && !o.worst)
        cli_die("--full is for --worst");
    if (o.given['M'] && !o.worst)
        cli_die("--memory is for --worst");
    if (o.resume && !o.out)
        cli_die("--resume needs the --out of the run it continues");
    if (o.resume && o.methods > 1)
        check_states(&o);
    return o.worst ? run_worst(&o) : run_sample(&o);
}
