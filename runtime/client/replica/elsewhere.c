/* Segments of other sets: what --check all compares with, and where partners write and read for the dead. Their parts
 * are attached when they are first used; replicas describe them to each other when they have allocated. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/segment/segment.h"

enum { TOGETHER = 512 };

/* A segment of this rank's, as the replicas have it. */
struct elsewhere {
    keel_segment_part *part; /* [sets * ranks] */
    keel_segment **attached; /* [sets * ranks]; NULL: not yet */
};
static struct elsewhere *elsewhere; /* by number, from 1 */
static uint64_t elsewhere_n;

static struct elsewhere *room_for(uint64_t number)
{
    size_t all = (size_t)replica.sets * (size_t)replica.size;
    if (number >= elsewhere_n) {
        uint64_t wider = 2 * number + 8;
        struct elsewhere *memory = realloc(elsewhere, wider * sizeof *memory);
        if (!memory)
            return NULL;
        memset(memory + elsewhere_n, 0, (wider - elsewhere_n) * sizeof *memory);
        elsewhere = memory;
        elsewhere_n = wider;
    }
    struct elsewhere *e = &elsewhere[number];
    e->part = calloc(all, sizeof *e->part);
    e->attached = calloc(all, sizeof *e->attached); // NOLINT(bugprone-sizeof-expression) pointers
    return e->part && e->attached ? e : NULL;
}

static keel_segment_part *parts_of(const struct elsewhere *e, int set)
{
    return e->part + (size_t)set * (size_t)replica.size;
}

static keel_status exchange_parts(struct elsewhere *e)
{
    keel_status status = KEEL_OK;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < replica.sets; s++)
            for (int r = 0; r < replica.size && s != replica.set && !replica.gone[s]; r += TOGETHER) {
                size_t n = (size_t)(replica.size - r < TOGETHER ? replica.size - r : TOGETHER);
                if (pass == 0)
                    (void)replica_send(s, REPLICA_PARTS, &parts_of(e, replica.set)[r], n * sizeof *e->part, &status);
                else
                    (void)replica_hear(s, REPLICA_PARTS, &parts_of(e, s)[r], n * sizeof *e->part, &status);
            }
    return status;
}

/* Parts of ranks that have none of it are never asked about. */
keel_status replica_describes(const keel_segment *segment, uint64_t number)
{
    if (replica.check != CHECK_ALL && !replica.partners)
        return KEEL_OK;
    struct elsewhere *e = room_for(number);
    if (!e)
        replica_stop("no memory for what replicas remember of a segment of other sets");
    for (int r = 0; r < replica.size; r++)
        (void)replica.below->segment_describe(segment, replica_native_of(r), &parts_of(e, replica.set)[r]);
    keel_status status = exchange_parts(e);
    for (int s = 0; s < replica.sets; s++)
        if (replica.gone[s])
            replica_binds(); /* nobody has said where its parts are */
    return status;
}

void replica_detaches(uint64_t number)
{
    struct elsewhere *e = number < elsewhere_n ? &elsewhere[number] : NULL;
    if (!e || !e->attached)
        return;
    for (size_t i = 0; i < (size_t)replica.sets * (size_t)replica.size; i++)
        if (e->attached[i])
            (void)replica.below->segment_free(e->attached[i]);
    free(e->part);
    free(e->attached);
    *e = (struct elsewhere){NULL, NULL};
}

keel_segment *replica_elsewhere(uint64_t number, int set, int target)
{
    struct elsewhere *e = number < elsewhere_n ? &elsewhere[number] : NULL;
    size_t i = (size_t)set * (size_t)replica.size + (size_t)target;
    if (!e || !e->part)
        return NULL;
    if (!e->attached[i] && replica.below->segment_attach(&e->part[i], &e->attached[i]) != KEEL_OK)
        e->attached[i] = NULL;
    return e->attached[i];
}

keel_segment *replica_part_in(uint64_t number, int set, int target)
{
    return set == replica.set ? replica_segment(number) : replica_elsewhere(number, set, target);
}
