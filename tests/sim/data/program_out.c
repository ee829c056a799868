/* The calls of a rank's program, and its operations that were started and not waited for. */
#include <stdlib.h>

#include "tests/sim/data/program_int.h"

void program_begin(struct program *p, const char *call)
{
    p->call_at = p->w->sched.now;
    p->call = call;
    p->process->frozen_ns = 0;
}

/* Its time: nothing takes longer than the operations' limit, but for what the process itself did not live. */
void program_ended(struct program *p, keel_status status, bool limited)
{
    struct runner *r = p->r;
    uint64_t took = p->w->sched.now - p->call_at - p->process->frozen_ns;
    p->call_at = 0;
    if (limited && took > r->client.timeout_ns + SEC)
        world_fail(p->w, "rank %d.%u: %s took %llu ms", r->rank, r->incarnation, p->call,
                   (unsigned long long)(took / MS));
    if (status == KEEL_ERR_FENCED || status == KEEL_ERR_AGENT_GONE)
        p->over = true;
}

const char *program_call(const struct runner *r, uint64_t *since)
{
    const char *call = NULL;
    for (const struct program *p = r->program; p; p = p->next)
        if (p->call_at && (!call || p->call_at < *since)) {
            *since = p->call_at;
            call = p->call;
        }
    return call;
}

/* ---- what is outstanding ---- */

static void out_remove(struct program *p, struct outstanding *o)
{
    struct outstanding **link = &p->out;
    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    p->outstanding--;
    free(o->base);
    free(o);
}

void program_out_ended(struct program *p, struct outstanding *o, keel_status status)
{
    if (o->pending) {
        model_status(p->w, p->r, o->region->segment, o->region->rank, status, "a put");
        model_put_done(p->w, o->pending, status);
    } else {
        model_status(p->w, p->r, o->region->segment, o->region->rank, status, "a get");
        if (status == KEEL_OK)
            model_got(p->w, p->r, o->region, o->offset, o->bytes, o->len, o->base, o->changes);
        if (status == KEEL_OK && o->strong)
            model_got_strong(p->w, p->r, o->region, o->offset, o->bytes, o->len, o->base);
    }
    out_remove(p, o);
}

void program_out_wait(struct program *p, struct outstanding *o)
{
    program_begin(p, "keel_wait");
    keel_status status = rma_wait(&p->r->client, &o->handle);
    program_ended(p, status, true);
    program_out_ended(p, o, status);
}

void program_implicit_ended(struct program *p, int rank, keel_status status)
{
    for (struct outstanding *o = p->out, *next; o; o = next) {
        next = o->next;
        if (!o->implicit)
            continue;
        const struct region *g = o->region;
        if (status != KEEL_OK && o->pending) {
            /* which of them it was is not known; one in doubt is completed by a later one only */
            model_put_done(p->w, o->pending, KEEL_ERR_TIMEOUT);
            out_remove(p, o);
        } else if (rank < 0 || g->rank == rank) {
            program_out_ended(p, o, KEEL_OK);
        }
    }
}

void program_fence(struct program *p, int rank)
{
    program_begin(p, "keel_fence");
    keel_status status = rma_fence(&p->r->client, rank);
    if (status != KEEL_OK &&
        rank >= 0) { /* which of them it was is not said; the others must end before they are given up */
        (void)rma_fence(&p->r->client, -1);
        rank = -1;
    }
    program_ended(p, status, true);
    program_implicit_ended(p, rank, status);
}

void program_wait_all(struct program *p)
{
    program_fence(p, -1);
    while (p->out && !p->over)
        program_out_wait(p, p->out);
}
