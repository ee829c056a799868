/* Who is tainted when, and of which kind the course is. */
#include <stdlib.h>

#include "sim/cli/cli.h"
#include "sim/sdc/sdc.h"

enum taint { CLEAN, INDIRECT, DIRECT };

static void taint(enum taint *of, enum taint how, struct moment *m)
{
    if (*of >= how)
        return;
    m->indirect += (how == INDIRECT) - (*of == INDIRECT);
    m->direct += how == DIRECT;
    *of = how;
}

static void happens(const struct log *l, const struct event *e, enum taint *of, struct moment *m)
{
    taint(&of[e->rank], e->flip ? DIRECT : INDIRECT, m);
    m->flips += e->flip;
    for (int to = 0; to < l->ranks && !e->flip; to++) {
        if (to == e->rank || (e->target >= 0 && e->target != to))
            continue;
        taint(&of[to], INDIRECT, m);
        m->messages += e->messages;
        m->all_messages += e->messages;
    }
}

/* The rule is in docs/sdc.md. */
static enum spread spread_of(const struct course *c, int ranks)
{
    if (c->moments == 0)
        return SPREAD_NONE;
    const struct moment *last = &c->moment[c->moments - 1];
    int end = last->direct + last->indirect, few = ranks / 4 > 2 ? ranks / 4 : 2, soon = 0;
    for (size_t i = 0; i < c->moments && c->moment[i].step <= c->moment[0].step + 2; i++)
        soon = c->moment[i].direct + c->moment[i].indirect;
    return end <= few ? SPREAD_LOCALISED : 4 * soon >= 3 * end ? SPREAD_IMMEDIATE : SPREAD_PROGRESSIVE;
}

void course_make(struct course *c, const struct log *l)
{
    enum taint *of = calloc((size_t)l->ranks, sizeof *of);
    *c = (struct course){.moment = calloc(l->events + 1, sizeof *c->moment)};
    if (!of || !c->moment)
        cli_die("out of memory");
    for (size_t i = 0; i < l->events; i++) {
        struct moment *m = c->moments ? &c->moment[c->moments - 1] : NULL;
        if (!m || m->step != l->event[i].step) {
            struct moment next = m ? *m : (struct moment){0};
            next.step = l->event[i].step;
            next.flips = next.messages = 0;
            m = &c->moment[c->moments++];
            *m = next;
        }
        happens(l, &l->event[i], of, m);
    }
    free(of);
    c->spread = spread_of(c, l->ranks);
}

void course_free(struct course *c)
{
    free(c->moment);
}

const char *spread_name(enum spread spread)
{
    static const char *const names[] = {"no wrong bit", "localised", "immediate", "progressive"};
    return names[spread];
}
