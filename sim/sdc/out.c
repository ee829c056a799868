/* Tables, and pictures of them with gnuplot: curves as in figures 10 to 16 of the paper, maps as in its figure 9. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/sdc/sdc.h"

enum { NAME = 4096, MAPS = 4 };

static FILE *opened(const char *dir, const char *file)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s/%s", dir, file);
    FILE *f = fopen(name, "w");
    if (!f)
        cli_die("%s: %s", name, strerror(errno));
    return f;
}

static void closed(FILE *f, const char *file)
{
    bool good = !ferror(f);
    if (fclose(f) != 0 || !good)
        cli_die("%s cannot be written: %s", file, strerror(errno));
}

/* Bad messages between each two ranks in that step, into [ranks][ranks]. */
static void count_pairs(const struct log *l, uint64_t step, uint64_t *pair)
{
    memset(pair, 0, (size_t)l->ranks * (size_t)l->ranks * sizeof *pair);
    for (size_t i = 0; i < l->events; i++) {
        const struct event *e = &l->event[i];
        for (int to = 0; to < l->ranks && !e->flip && e->step == step; to++)
            if (to != e->rank && (e->target < 0 || e->target == to))
                pair[e->rank * l->ranks + to] += e->messages;
    }
}

static uint64_t *pairs_alloc(const struct log *l)
{
    uint64_t *pair = calloc((size_t)l->ranks * (size_t)l->ranks, sizeof *pair);
    if (!pair)
        cli_die("out of memory");
    return pair;
}

void out_csv(const struct course *c, const struct log *l, const char *dir)
{
    FILE *f = opened(dir, "steps.csv");
    fputs("step,flips,bad_messages,bad_messages_so_far,tainted_directly,tainted_indirectly,tainted\n", f);
    for (const struct moment *m = c->moment; m < c->moment + c->moments; m++)
        fprintf(f, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,%d,%d\n", m->step, m->flips, m->messages,
                m->all_messages, m->direct, m->indirect, m->direct + m->indirect);
    closed(f, "steps.csv");
    uint64_t *pair = pairs_alloc(l);
    f = opened(dir, "pairs.csv");
    fputs("step,from,to,bad_messages\n", f);
    for (const struct moment *m = c->moment; m < c->moment + c->moments; m++) {
        count_pairs(l, m->step, pair);
        for (int k = 0; k < l->ranks * l->ranks; k++)
            if (pair[k])
                fprintf(f, "%" PRIu64 ",%d,%d,%" PRIu64 "\n", m->step, k / l->ranks, k % l->ranks, pair[k]);
    }
    closed(f, "pairs.csv");
    free(pair);
}

static void put_curves(FILE *g, const struct course *c, const struct log *l, const char *dir)
{
    fprintf(
        g,
        "set terminal svg size 900,520 font 'sans,12'; set output '%s/steps.svg'\n"
        "set datafile separator ','; set key top left; set xlabel 'step'\n"
        "set ylabel 'bad messages so far' tc rgb '#0072B2'; set y2label 'tainted ranks'\n"
        "set ytics nomirror; set y2tics; set yrange [0:*]; set y2range [0:%d]; set title '%s, %d ranks'\n"
        "set style fill solid noborder\n"
        "plot '%s/steps.csv' every ::1 using 1:7 axes x1y2 with fillsteps fc rgb '#CCCCCC' title 'tainted by others', "
        "'' every ::1 using 1:5 axes x1y2 with fillsteps fc rgb '#777777' title 'tainted by a wrong bit', "
        "'' every ::1 using 1:4 with steps lw 2 lc rgb '#0072B2' title 'bad messages'\nunset y2tics; unset y2label\n",
        dir, l->ranks, spread_name(c->spread), l->ranks, dir);
}

static void put_map(FILE *g, const struct log *l, uint64_t step, uint64_t *pair, const char *dir)
{
    count_pairs(l, step, pair);
    fprintf(g,
            "reset; set terminal svg size 560,520 font 'sans,12'; set output '%s/pairs-%" PRIu64 ".svg'\n"
            "set title 'bad messages in step %" PRIu64 "'; set xlabel 'to rank'; set ylabel 'from rank'\n"
            "set xrange [-0.5:%d.5]; set yrange [-0.5:%d.5]; set cbrange [0:*]; set tics out nomirror\n"
            "set palette defined (0 'white', 1 '#D55E00', 2 'black'); plot '-' using 1:2:3 with image pixels notitle\n",
            dir, step, step, l->ranks - 1, l->ranks - 1);
    for (int k = 0; k < l->ranks * l->ranks; k++)
        fprintf(g, "%d %d %" PRIu64 "\n", k % l->ranks, k / l->ranks, pair[k]);
    fputs("e\n", g);
}

bool out_pictures(const struct course *c, const struct log *l, const char *dir)
{
    uint64_t *pair = pairs_alloc(l);
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* gnuplot may end before it has read everything */
    FILE *g = popen("gnuplot", "w");
    if (g) {
        put_curves(g, c, l, dir);
        for (size_t i = 0, last = c->moments; i < MAPS; i++) { /* the first, the last, and two between */
            size_t k = i * (c->moments - 1) / (MAPS - 1);
            if (k != last)
                put_map(g, l, c->moment[k].step, pair, dir);
            last = k;
        }
    }
    int ended = g ? pclose(g) : -1;
    signal(SIGPIPE, on_pipe);
    free(pair);
    return ended == 0;
}
