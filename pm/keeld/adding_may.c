/* May a node be added to the job as it is, and which place of the grid does it have? */
#include "pm/keeld/adding_parts.h"

#include "runtime/topo/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who stood there last; -1: nobody ever did. */
static int last_at(const struct keeld *a, int place)
{
    int last = -1;
    for (int i = 0; i < a->view.born; i++)
        if (plane_place(a->plane, i) == place)
            last = i;
    return last;
}

/* x,y as written: a place of the grid; -1: it is none. */
static int read_position(const struct grid *g, const char *text)
{
    int at[GRID_MAX_DIMS];
    for (int d = 0; d < g->ndims; d++) {
        char *rest;
        long k = strtol(text, &rest, 10);
        if (*text < '0' || *text > '9' || k >= g->size[d] || *rest != (d < g->ndims - 1 ? ',' : '\0'))
            return -1;
        at[d] = (int)k;
        text = rest + 1;
    }
    return grid_node(g, at);
}

/* The place of a node that is dead: the one that is asked for, or the first one. returns   a result of may_be. */
static int choose_place(struct keeld_adding *n, char *why, size_t size)
{
    struct keeld *a = n->agent;
    const char *shape = a->job.settings.grid.grid;
    struct grid g;
    n->was = n->place = 0;
    if (!settings_on_grid(&a->job.settings)) {
        snprintf(why, size, "--position is of use only in a job on a grid");
        return n->position ? ADDING_USE : 0;
    }
    (void)grid_parse(&g, shape); /* keelrun has read it, and the plane */
    int only = n->position ? read_position(&g, n->position) : -1;
    if (n->position && only < 0) {
        snprintf(why, size, "--position %s is no place of the grid %s", n->position, shape);
        return ADDING_USE;
    }
    for (int place = n->position ? only : 0; place < (n->position ? only + 1 : g.nodes); place++) {
        int last = last_at(a, place);
        if (last >= 0 && a->view.alive[last]) {
            snprintf(why, size, "on place %d of the grid %s is node %d, which lives", place, shape, last);
            continue;
        }
        n->was = last + 1;
        n->place = place + 1;
        return 0;
    }
    if (!n->position)
        snprintf(why, size, "no place of the grid %s is free: its nodes live", shape);
    return ADDING_USE;
}

/* returns   0; else keelctl's exit code, with a line. */
int adding_may_be(struct keeld_adding *n, char *why, size_t size)
{
    const struct keeld *a = n->agent;
    const struct job_settings *s = &a->job.settings;
    const struct start_way *way = &a->job.way;
    if (a->state != KEELD_RUNNING) {
        snprintf(why, size, "the job does not run%s", a->state > KEELD_RUNNING ? " any more" : " yet");
        return 1;
    }
    if (s->room == 0)
        snprintf(why, size, "the job has no room for nodes that come later (keelrun --room)");
    else if (a->view.born == settings_ids(s))
        snprintf(why, size, "there is no room for one more node (--room %d)", s->room);
    else if (!way->known || way->bed == START_NETNS)
        snprintf(why, size,
                 way->known ? "a node of a bed of namespaces is made by keelrun alone"
                            : "keelrun has not started this job: nobody knows how nodes are");
    else if (n->host && way->bed == START_LOOPBACK)
        snprintf(why, size, "the job's nodes are emulated on one host: it takes no HOST");
    else if (n->host && (!n->host[0] || n->host[0] == '-' || strlen(n->host) > 255))
        snprintf(why, size, "%s is no host", n->host);
    else
        return choose_place(n, why, size);
    return ADDING_USE;
}
