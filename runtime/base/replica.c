/* Pure. */
#include "runtime/base/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/signals.h"

bool replica_map_init_from(struct replica_map *m, int ranks, int replicas, const int *native)
{
    int natives = ranks * replicas;
    *m = (struct replica_map){.ranks = ranks,
                              .replicas = replicas,
                              .native = calloc((size_t)natives, sizeof *m->native),
                              .place = calloc((size_t)natives, sizeof *m->place)};
    bool good = m->native && m->place;
    for (int i = 0; i < natives && good; i++)
        m->place[i] = -1;
    for (int i = 0; i < natives && good; i++) {
        good = native[i] >= 0 && native[i] < natives && m->place[native[i]] < 0;
        if (good)
            m->place[native[i]] = i;
    }
    if (!good) {
        replica_map_fini(m);
        return false;
    }
    memcpy(m->native, native, (size_t)natives * sizeof *native);
    return true;
}

bool replica_map_init(struct replica_map *m, int ranks, int replicas)
{
    int natives = ranks * replicas, *native = calloc((size_t)natives, sizeof *native);
    for (int i = 0; native && i < natives; i++)
        native[i] = i;
    bool good = native && replica_map_init_from(m, ranks, replicas, native);
    free(native);
    if (!good)
        *m = (struct replica_map){0};
    return good;
}

void replica_map_fini(struct replica_map *m)
{
    free(m->native);
    free(m->place);
    *m = (struct replica_map){0};
}

bool replica_map_is_apart(const struct replica_map *m, const int *group, int *rank)
{
    for (int q = 0; q < m->ranks; q++)
        for (int s = 1; s < m->replicas; s++)
            for (int t = 0; t < s; t++)
                if (group[replica_native(m, q, s)] == group[replica_native(m, q, t)]) {
                    *rank = q;
                    return false;
                }
    return true;
}

/* The first rank of the set that is on the rank's node. */
static int first_beside(const struct replica_map *m, const int *node, int rank, int set)
{
    int q = 0;
    while (node[replica_native(m, q, set)] != node[replica_native(m, rank, set)])
        q++;
    return q;
}

bool replica_map_is_even(const struct replica_map *m, const int *node, int rank[2], int *set)
{
    for (int q = 0; q < m->ranks; q++)
        for (int s = 1; s < m->replicas; s++) {
            int here = first_beside(m, node, q, s), there = first_beside(m, node, q, 0);
            if (here == there)
                continue;
            /* the lower of the two shares its node with rank q in one of them, and cannot in the other: there the
             * first is a later one */
            rank[0] = here < there ? here : there;
            rank[1] = q;
            *set = s;
            return false;
        }
    return true;
}

void replica_map_number(const struct replica_map *m, int set, const int *node, int *number)
{
    int next = 0;
    for (int q = 0; q < m->ranks; q++) {
        int first = first_beside(m, node, q, set);
        number[q] = first == q ? next++ : number[first];
    }
}

const char *replica_name(const struct replica_map *m, int native, char out[REPLICA_NAME])
{
    struct replica r = replica_of(m, native);
    if (replica_map_is_used(m))
        snprintf(out, REPLICA_NAME, "rank %d of set %d", r.rank, r.set);
    else
        snprintf(out, REPLICA_NAME, "rank %d", r.rank);
    return out;
}

const char *replica_loss_said(const struct replica_map *m, int set, const struct replica_loss *loss, char *out,
                              size_t size)
{
    char how[SIGNAL_DID + 16], did[SIGNAL_DID];
    if (loss->code)
        snprintf(how, sizeof how, "it ended with exit code %d", loss->code);
    else if (loss->signal)
        snprintf(how, sizeof how, "it %s", signal_did(loss->signal, did, sizeof did));
    else
        snprintf(how, sizeof how, "node %d died", loss->node);
    snprintf(out, size, "set %d has lost rank %d (%s)", set, replica_of(m, loss->native).rank, how);
    return out;
}
