/* The calls of a rank's program, and its operations that were started and not waited for. */
#include <stdlib.h>

#include "tests/sim/data/program_int.h"
#include "runtime/client/op/rma.h"

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

void program_dump(const struct runner *r)
{
    for (const struct program *p = r->program; p; p = p->next)
        world_say(r->w, "  thread %d is in %s%s", p->thread, p->call_at ? p->call : "no call",
                  p->kept ? ", keeps a mutex" : "");
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
        if (!(o->strong && o->region->stored && status == KEEL_ERR_TIMEOUT)) /* begun before the store */
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

/* ---- fences, which are the process's ---- */

static bool is_covered(const struct outstanding *o, const struct fencing *f)
{
    return o->implicit && !o->starting && o->born < f->number && (f->rank < 0 || o->region->rank == f->rank);
}

struct fencing program_fence_begins(struct program *p, int rank)
{
    struct fencing f = {++p->r->fences, rank};
    for (struct program *t = p->r->program; t; t = t->next)
        for (struct outstanding *o = t->out; o; o = o->next)
            o->fences += is_covered(o, &f);
    return f;
}

/* No fence that covers it is under way any more. Which one an error is told to is not known, nor which operation's it
 * is; one in doubt is completed by a later put only. */
static void implicit_ended(struct program *t, struct outstanding *o)
{
    if (!o->suspect) {
        program_out_ended(t, o, KEEL_OK);
        return;
    }
    model_put_done(t->w, o->pending, KEEL_ERR_TIMEOUT);
    out_remove(t, o);
}

void program_fence_ended(struct program *p, const struct fencing *f, keel_status status)
{
    for (struct program *t = p->r->program; t; t = t->next)
        for (struct outstanding *o = t->out, *next; o; o = next) {
            next = o->next;
            o->suspect = o->suspect || (status != KEEL_OK && (o->implicit || o->starting));
            if (is_covered(o, f) && --o->fences == 0)
                implicit_ended(t, o);
        }
}

void program_fence(struct program *p, int rank)
{
    struct fencing f = program_fence_begins(p, rank);
    program_begin(p, "keel_fence");
    keel_status status = rma_fence(&p->r->client, rank);
    program_ended(p, status, true);
    program_fence_ended(p, &f, status);
}

void program_wait_all(struct program *p)
{
    program_fence(p, -1);
    while (p->out && !p->over)
        if (!p->out->implicit)
            program_out_wait(p, p->out);
        else {
            program_fence(p, -1);
            process_spend(p->process, US); /* another thread's fence may still complete it */
        }
}
