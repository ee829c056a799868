/* <keel/update.h> for the process: plain stores into replicated segments, and how they reach the other copies.
 *
 * A tracked segment's copy on this node is mapped twice. At the address that programs know (keel_address) it is protected
 * against writing; the library itself, and keel_update_begin, use the other place. The first store to a granule raises a
 * signal: the handler keeps what the granule held (its twin), lets it be written, and notes it. keel_update_flush protects
 * what is noted again, and puts the words that differ from their twins.
 *
 * A twin says what the other copies hold for as long as nobody else brings anything there. Where somebody has since then written to the
 * granule through Keel (protocol/marks.h), or copies were made equal or filled, which changes the route's tag, a word may be what it was and
 * another one elsewhere: all words of such a granule are put.
 *
 * A granule's state: CLEAN, protected -> TAKING, one thread copies it -> DIRTY, writable -> FLUSHING, protected -> CLEAN, or DIRTY
 * if its words could not be put. Who stores into one that another thread takes or flushes gets the signal again and again until that
 * is done. The handler calls memcpy, mprotect
 * and atomics only. Entries are never freed, so that it can walk them without a lock; one whose base is 0 is free. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/client/near.h"
#include "runtime/client/process.h"
#include "runtime/client/track.h"
#include "runtime/protocol/marks.h"

#define KEEL_EXPORT __attribute__((visibility("default")))

enum { BATCH = 1024, RUN_BYTES = 65536, UNDER_WAY_MAX = 64 };
enum { CLEAN, TAKING, DIRTY, FLUSHING };

/* What the other copies depended on when a granule's twin was taken. */
struct since {
    uint64_t tag; /* of the route */
    uint32_t mark;
};

struct tracked {
    struct tracked *next;
    _Atomic uintptr_t base; /* of the protected place; written last */
    size_t bytes, granule;
    size_t granules;
    uint8_t *own;  /* the library's place */
    uint8_t *twin; /* memory where granules are not clean */
    _Atomic uint8_t *state;
    struct since *since; /* where granules are not clean; whoever sets the state reads and writes it */
    int group;
    keel_segment *segment;
};

static pthread_mutex_t track_lock = PTHREAD_MUTEX_INITIALIZER; /* the list, and flushes */
static struct tracked *_Atomic tracked_first;
static struct sigaction earlier; /* handler */
static bool handling;

/* ---- the signal ---- */

static size_t granule_bytes(const struct tracked *t, size_t g)
{
    return t->bytes - g * t->granule < t->granule ? t->bytes - g * t->granule : t->granule;
}

static struct since since_now(const struct tracked *t, size_t g)
{
    return (struct since){.tag = page_tag(process_client.page, t->group),
                          .mark = atomic_load(&marks_of(t->own, t->bytes)[g])};
}

/* The other copies hold what the twin does. */
static bool twin_holds(const struct tracked *t, size_t g)
{
    struct since now = since_now(t, g), then = t->since[g];
    return then.tag == now.tag && then.mark == now.mark && route_mode(now.tag) == ROUTE_DIRECT;
}

static void take(struct tracked *t, size_t g)
{
    uint8_t was = CLEAN;
    if (!atomic_compare_exchange_strong(&t->state[g], &was, TAKING))
        return;
    size_t at = g * t->granule, bytes = granule_bytes(t, g);
    t->since[g] = since_now(t, g); /* before the bytes are read */
    memcpy(t->twin + at, t->own + at, bytes);
    uint8_t *view = (uint8_t *)atomic_load(&t->base); // NOLINT(performance-no-int-to-ptr)
    if (mprotect(view + at, bytes, PROT_READ | PROT_WRITE)) {
        static const char line[] = "keel_segment_track: the system does not let memory be written again\n";
        (void)!write(STDERR_FILENO, line, sizeof line - 1);
        abort();
    }
    atomic_store(&t->state[g], DIRTY);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (earlier.sa_flags & SA_SIGINFO)
        earlier.sa_sigaction(number, info, context);
    else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN)
        earlier.sa_handler(number);
    else
        (void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL},
                        NULL); /* and the instruction is tried again */
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    for (struct tracked *t = atomic_load(&tracked_first); info->si_code == SEGV_ACCERR && t; t = t->next) {
        uintptr_t base = atomic_load(&t->base);
        if (base && at - base < t->bytes && atomic_load(&t->base) == base) {
            take(t, (at - base) / t->granule);
            return;
        }
    }
    pass_on(number, info, context);
}

/* Lock held. */
static keel_status handle_faults(void)
{
    struct sigaction how = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (handling)
        return KEEL_OK;
    sigemptyset(&how.sa_mask);
    handling = sigaction(SIGSEGV, &how, &earlier) == 0;
    return handling ? KEEL_OK : KEEL_ERR_SYSTEM;
}

/* ---- tracking ---- */

static struct tracked *entry_of(const keel_segment *s)
{
    struct tracked *t = atomic_load(&tracked_first);
    while (t && !(atomic_load(&t->base) && t->segment == s))
        t = t->next;
    return t;
}

static struct tracked *entry_take(void)
{
    struct tracked *t = atomic_load(&tracked_first);
    while (t && atomic_load(&t->base))
        t = t->next;
    if (t || !(t = calloc(1, sizeof *t)))
        return t;
    t->next = atomic_load(&tracked_first);
    atomic_store(&tracked_first, t);
    return t;
}

static void entry_clear(struct tracked *t)
{
    atomic_store(&t->base, 0);
    if (t->twin)
        munmap(t->twin, t->bytes);
    free((void *)t->state);
    free(t->since);
    t->twin = NULL;
    t->state = NULL;
    t->since = NULL;
    t->segment = NULL;
}

static keel_status entry_fill(struct tracked *t, keel_segment *s, size_t bytes)
{
    t->bytes = bytes;
    t->granule = layout_piece_bytes(bytes);
    t->granules = layout_pieces(bytes);
    t->segment = s;
    t->state = calloc(t->granules, sizeof *t->state);
    t->since = calloc(t->granules, sizeof *t->since);
    void *twin = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    t->twin = twin == MAP_FAILED ? NULL : twin;
    return t->state && t->since && t->twin ? KEEL_OK : KEEL_ERR_NOMEM;
}

/* Lock held. */
static keel_status track(struct client *c, keel_segment *s)
{
    if (entry_of(s))
        return KEEL_OK;
    struct tracked *t = entry_take();
    uint8_t *view;
    keel_status status = t ? segment_map_twice(s, c->rank, &view) : KEEL_ERR_NOMEM;
    if (status != KEEL_OK)
        return status;
    int slot = (int)page_rank(c->page, c->rank)->slot;
    status = entry_fill(t, s, s->map_bytes[slot]);
    if (status == KEEL_OK)
        status = handle_faults();
    if (status == KEEL_OK && mprotect(view, t->bytes, PROT_READ))
        status = KEEL_ERR_SYSTEM;
    t->own = atomic_load(&s->map[slot]);
    t->group = group_of(slot, s->redundancy);
    if (status == KEEL_OK)
        atomic_store(&t->base, (uintptr_t)view);
    else
        entry_clear(t);
    return status;
}

KEEL_EXPORT keel_status keel_segment_track(keel_segment *segment)
{
    struct client *c = &process_client;
    if (!c->ready || !segment || segment->retired)
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    if (segment->redundancy == KEEL_REDUNDANCY_NONE || segment->largest == 0)
        return KEEL_OK;
    pthread_mutex_lock(&track_lock);
    keel_status status = track(c, segment);
    pthread_mutex_unlock(&track_lock);
    return status;
}

void track_forget(void *user, const keel_segment *segment)
{
    (void)user;
    pthread_mutex_lock(&track_lock);
    struct tracked *t = entry_of(segment);
    if (t)
        entry_clear(t);
    pthread_mutex_unlock(&track_lock);
}

void track_touch(const void *dst, size_t len)
{
    uintptr_t from = (uintptr_t)dst, to = from + len;
    for (struct tracked *t = atomic_load(&tracked_first); t; t = t->next) {
        uintptr_t base = atomic_load(&t->base), at = from > base ? from : base;
        while (base && at < to && at < base + t->bytes) {
            (void)__atomic_fetch_or((uint8_t *)at, 0, __ATOMIC_RELAXED); // NOLINT(performance-no-int-to-ptr)
            at = base + ((at - base) / t->granule + 1) * t->granule;
        }
    }
}

/* ---- flush ---- */

/* Runs of words of one rank's part go together: many of them are short. */
struct flush {
    struct tracked *tracked;
    keel_handle handle;
    int begun; /* puts of the handle */
    keel_status status;
    int rank; /* whose the pieces are */
    size_t n;
    keel_piece piece[BATCH];
};

static void flush_wait(struct flush *f)
{
    keel_status status = f->begun ? keel_wait(&f->handle) : KEEL_OK;
    if (f->status == KEEL_OK)
        f->status = status;
    f->begun = 0;
}

static void flush_pieces(struct flush *f)
{
    if (!f->n)
        return;
    keel_status status = f->begun ? KEEL_OK : keel_handle_aggregate(&f->handle);
    if (status == KEEL_OK)
        status = keel_put_vector_nb(f->tracked->segment, f->rank, f->piece, f->n, &f->handle);
    if (status == KEEL_OK)
        f->begun++;
    else if (f->status == KEEL_OK)
        f->status = status;
    f->n = 0;
    if (f->begun == UNDER_WAY_MAX)
        flush_wait(f);
}

static void flush_put(struct flush *f, int rank, size_t offset, uint8_t *src, size_t len)
{
    if (f->n == BATCH || f->rank != rank)
        flush_pieces(f);
    f->rank = rank;
    f->piece[f->n++] = (keel_piece){offset, src, len};
}

/* Bytes of the copy, which lie in the parts of the ranks of this node. */
static void flush_run(struct flush *f, size_t from, size_t to)
{
    struct client *c = &process_client;
    const keel_segment *s = f->tracked->segment;
    uint32_t slot = page_rank(c->page, c->rank)->slot;
    for (int r = 0; r < c->size; r++) {
        const struct page_rank *k = page_rank(c->page, r);
        size_t part = (size_t)s->part_at[r], end = part + (size_t)s->part_bytes[r];
        size_t lo = from > part ? from : part, hi = to < end ? to : end;
        if (k->slot == slot && lo < hi)
            flush_put(f, r, lo - part, f->tracked->own + lo, hi - lo);
    }
}

static uint64_t word_at(const uint8_t *p)
{
    return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
}

/* The words of a granule that other copies may not have, in runs. Copies are whole pages: so are granules. */
static void flush_granule(struct flush *f, size_t g)
{
    const struct tracked *t = f->tracked;
    bool all = !twin_holds(t, g);
    size_t end = g * t->granule + granule_bytes(t, g);
    for (size_t at = g * t->granule; at < end;) {
        if (!all && word_at(t->own + at) == word_at(t->twin + at)) {
            at += 8;
            continue;
        }
        size_t from = at;
        while (at < end && at - from < RUN_BYTES && (all || word_at(t->own + at) != word_at(t->twin + at)))
            at += 8;
        flush_run(f, from, at);
    }
}

/* Where another thread's store has just made it writable a third one's may be there already: it is dirty in a moment. */
static bool flush_takes(struct tracked *t, size_t g)
{
    uint8_t was = DIRTY;
    while (!atomic_compare_exchange_strong(&t->state[g], &was, FLUSHING)) {
        if (was != TAKING)
            return false;
        sched_yield();
        was = DIRTY;
    }
    return true;
}

/* Lock held. What is dirty is protected first: a store after that waits, and is the next flush's. */
static keel_status flush(struct tracked *t)
{
    uint8_t *view = (uint8_t *)atomic_load(&t->base); // NOLINT(performance-no-int-to-ptr)
    static struct flush f;                            /* under the lock */
    f.tracked = t;
    f.begun = 0;
    f.n = 0;
    f.status = KEEL_OK;
    for (size_t g = 0; g < t->granules; g++) {
        if (!flush_takes(t, g))
            continue;
        if (mprotect(view + g * t->granule, granule_bytes(t, g), PROT_READ))
            f.status = KEEL_ERR_SYSTEM;
        flush_granule(&f, g);
    }
    flush_pieces(&f);
    flush_wait(&f);
    for (size_t g = 0; g < t->granules; g++) {
        size_t at = g * t->granule, bytes = granule_bytes(t, g);
        if (atomic_load(&t->state[g]) != FLUSHING)
            continue;
        if (f.status == KEEL_OK) {
            (void)madvise(t->twin + at, bytes, MADV_FREE);
        } else {
            marks_set(t->own, t->bytes, at, bytes); /* some copies may have got some of it */
            (void)mprotect(view + at, bytes, PROT_READ | PROT_WRITE);
        }
        atomic_store(&t->state[g], f.status == KEEL_OK ? CLEAN : DIRTY);
    }
    return f.status;
}

KEEL_EXPORT keel_status keel_update_flush(keel_segment *segment)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    keel_status status = KEEL_OK;
    pthread_mutex_lock(&track_lock);
    for (struct tracked *t = atomic_load(&tracked_first); t; t = t->next) {
        if (!atomic_load(&t->base) || (segment && t->segment != segment))
            continue;
        keel_status one = flush(t);
        if (status == KEEL_OK)
            status = one;
    }
    pthread_mutex_unlock(&track_lock);
    return status;
}

/* ---- updates that the program tells of ---- */

static keel_status update(keel_segment *s, size_t offset, size_t len, uint8_t **at)
{
    struct client *c = &process_client;
    *at = NULL;
    if (near_bad_range(c, s, c->rank, offset, len))
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    const struct page_rank *k = page_rank(c->page, c->rank);
    keel_status status;
    uint8_t *copy = segment_map_whole(s, (int)k->slot, &status);
    if (copy)
        *at = copy + s->part_at[c->rank] + offset;
    return status;
}

KEEL_EXPORT keel_status keel_update_begin(keel_segment *segment, size_t offset, size_t len, void **address)
{
    uint8_t *at;
    keel_status status = update(segment, offset, len, &at);
    if (address)
        *address = at;
    return status;
}

KEEL_EXPORT keel_status keel_update_end(keel_segment *segment, size_t offset, size_t len)
{
    uint8_t *at;
    keel_status status = update(segment, offset, len, &at);
    if (status != KEEL_OK || segment->redundancy == KEEL_REDUNDANCY_NONE)
        return status;
    return rma_put(&process_client, segment, process_client.rank, offset, at, len);
}
