#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/plural.h"
#include "sim/place/anneal.h"
#include "sim/place/options.h"

enum { SAVE_EVERY_S = 10, SHOW_EVERY_MS = 200 };

/* Nodes that die before the map is looked for: those listed, then random ones that held a slot at launch. */
static void let_die(const struct options *o, struct job *j)
{
    struct rng rng;
    rng_seed(&rng, o->seed);
    for (int32_t i = 0; i < o->ndead; i++)
        job_fail(j, o->dead_node[i]);
    for (int32_t i = 0; i < o->nfail; i++)
        job_fail(j, options_node(o, o->fail[i]));
    int32_t left = 0;
    for (int32_t r = 0; r < j->place.slots; r++)
        left += j->place.slot_at[j->place.home[r]] != PLACE_DEAD;
    if (o->failures > left)
        cli_die("--failures %d: only %d %s alive", o->failures, left,
                plural(left, "node that had a slot is", "nodes that had a slot are"));
    for (int32_t i = 0; i < o->failures;) {
        int32_t node = j->place.home[rng_below(&rng, (uint64_t)j->place.slots)];
        if (j->place.slot_at[node] == PLACE_DEAD)
            continue;
        job_fail(j, node);
        i++;
    }
}

/* Everything the map depends on but the number of steps: with more of them a finished run can be continued. */
static void describe(const struct options *o, const struct job *j, char *buf, size_t len)
{
    char grid[96], layout[32];
    uint64_t dead = 0;
    for (int32_t i = 0; i < j->place.ndead; i++)
        dead = dead * 0x100000001b3u + (uint64_t)j->place.dead_list[i] + 1;
    snprintf(buf, len, "keel-place-optimise 2 %s %s %s %s %s %d %d/%d seed %" PRIu64 " dead %" PRIx64,
             grid_format(&o->setup.grid, grid, sizeof grid), spare_format(&o->setup.layout, layout, sizeof layout),
             o->setup.method, o->setup.order, pattern_kind_name(o->setup.pattern), (int)o->setup.convention,
             o->setup.net.tree.down, o->setup.net.tree.spines, o->seed, dead);
    size_t used = strlen(buf);
    if (o->setup.moves)
        snprintf(buf + used, len - used, " moves %d", o->setup.moves);
}

static void show(const struct anneal *a)
{
    fprintf(stderr, "\r%3.0f%%  found %d, looking for %d, none below %d possible \033[K",
            100.0 * (double)a->step / (double)a->steps, a->found, a->target, a->bound);
}

/* returns   what is wrong, or NULL; a state file is written now and then, and when it is interrupted. */
static const char *anneal(struct anneal *a, const char *state, const char *name)
{
    bool tty = isatty(STDERR_FILENO);
    uint64_t saved = clock_now_ns(), shown = 0;
    const char *why = NULL;
    while (!why && !atomic_load(&cli_stop) && anneal_burst(a)) {
        uint64_t now = clock_now_ns();
        if (tty && now - shown > SHOW_EVERY_MS * KEEL_NS_PER_MS) {
            show(a);
            shown = now;
        }
        if (state && now - saved > SAVE_EVERY_S * KEEL_NS_PER_S) {
            (void)anneal_save(a, state, name); /* a full disk may have room next time */
            saved = now;
        }
    }
    if (tty)
        fputs("\r\033[K", stderr);
    return why || !state ? why : anneal_save(a, state, name);
}

static void print(FILE *f, const struct options *o, const struct anneal *a, int32_t start)
{
    const struct place *p = &a->job->place;
    int32_t displaced = 0;
    for (int32_t r = 0; r < p->slots; r++)
        displaced += a->best[r] != p->home[r];
    if (o->format == FORMAT_CSV) {
        fputs("slot,node\n", f);
        for (int32_t r = 0; r < p->slots; r++)
            fprintf(f, "%d,%d\n", r, a->best[r]);
    } else if (o->format == FORMAT_JSON) {
        json_t *map = json_array();
        for (int32_t r = 0; r < p->slots; r++)
            json_array_append_new(map, json_integer(a->best[r]));
        json_t *doc = json_pack("{s:i, s:s, s:i, s:i, s:i, s:I, s:i, s:o}", "dead", p->ndead, "start", o->setup.method,
                                "start_collisions", start, "collisions", a->found, "at_least", a->bound, "steps",
                                (json_int_t)a->step, "displaced", displaced, "map", map);
        json_dumpf(doc, f, JSON_COMPACT);
        fputc('\n', f);
        json_decref(doc);
    } else
        fprintf(f, "%d dead %s; collisions %d with %s, %d found in %" PRId64 " %s, %d at least for any map; %d %s\n",
                p->ndead, plural(p->ndead, "node", "nodes"), start, o->setup.method, a->found, a->step,
                plural(a->step, "step", "steps"), a->bound, displaced,
                plural(displaced, "slot off its first node", "slots off their first nodes"));
}

int cmd_optimise(int argc, char **argv)
{
    static struct options o;
    static char state[OUT_PATH];
    char name[512];
    struct job j;
    struct anneal a;
    struct out out;
    options_parse(
        &o, "optimise",
        "The best map for a set of dead nodes that simulated annealing finds, and what no map can beat. It "
        "starts from the map that --method has reached.\vInterrupted with --out, it keeps its state in "
        "FILE.state, and --resume goes on from there, also with more --steps, to what an uninterrupted run "
        "finds. --prove looks at every map there is and can take as long; some twenty nodes are not too many.",
        "gsSmTbpcFfdkrxqoRjv", argc, argv);
    options_setup(&o);
    if (o.resume && !o.out)
        cli_die("--resume needs the --out of the run it continues");
    if (o.methods > 1)
        cli_die("one method at a time");
    if (!o.ndead && !o.nfail && !o.failures)
        options_useless(&o, "Tb", "when no node dies");
    if (!job_open(&j, &o.setup))
        cli_die("out of memory");
    let_die(&o, &j);
    int32_t start = load_collisions(&j.load);
    const char *why = anneal_open(&a, &j, o.seed, o.steps);
    describe(&o, &j, name, sizeof name);
    if (o.out && (size_t)snprintf(state, sizeof state, "%s.state", o.out) >= sizeof state)
        cli_die("the file name is too long");
    out_open(&out, o.out);
    cli_catch_signals();
    if (!why && o.resume)
        why = anneal_load(&a, state, name);
    if (!why)
        why = anneal(&a, o.out ? state : NULL, name);
    if (!why && o.prove)
        why = anneal_prove(&a, &cli_stop);
    if (why)
        cli_die("%s", why);
    print(out.f, &o, &a, start);
    out_commit(&out);
    if (atomic_load(&cli_stop))
        fprintf(stderr, "keel-place optimise: interrupted%s\n", o.out ? "; --resume goes on" : "");
    anneal_close(&a);
    job_close(&j);
    return atomic_load(&cli_stop) ? 130 : 0;
}
