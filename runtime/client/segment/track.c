/* <keel/update.h> for the process: plain stores into replicated segments, and how they are found out. twins.c brings
 * them to the other copies.
 *
 * A tracked segment's copy on this node is mapped twice. At the address that programs know (keel_address) it is
 * protected against writing; the library itself, and keel_update_begin, use the other place. The first store to a
 * granule raises a signal: the handler takes its twin and lets it be written. keel_update_flush protects
 * it again, and puts the words that differ. Who stores into a granule that another thread takes or flushes gets the
 * signal again and again until that is done. Entries are never freed, so that the handler can walk them without a
 * lock; one whose base is 0 is free. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/limited.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/track.h"
#include "runtime/client/segment/twins.h"
#include "runtime/client/segment/update.h"

struct tracked {
    struct tracked *next;
    _Atomic uintptr_t base; /* of the protected place; written last */
    struct twins twins;
};

static pthread_mutex_t track_lock = PTHREAD_MUTEX_INITIALIZER; /* the list, and flushes */
static struct tracked *_Atomic tracked_first;
static struct sigaction earlier; /* handler */
static bool handling;

/* ---- the signal ---- */

static bool view_protect(void *user, size_t at, size_t bytes, bool protect)
{
    const struct tracked *t = user;
    uint8_t *view = (uint8_t *)atomic_load(&t->base); // NOLINT(performance-no-int-to-ptr)
    return mprotect(view + at, bytes, protect ? PROT_READ : PROT_READ | PROT_WRITE) == 0;
}

static void twin_unused(void *user, size_t at, size_t bytes)
{
    const struct tracked *t = user;
    (void)madvise(t->twins.twin + at, bytes, MADV_FREE);
}

static void take(struct tracked *t, size_t at)
{
    static const char line[] = "keel_segment_track: the system does not let memory be written again\n";
    if (twins_take(&t->twins, at))
        return;
    (void)!limited_write(STDERR_FILENO, line, sizeof line - 1);
    abort();
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
        if (base && at - base < t->twins.bytes && atomic_load(&t->base) == base) {
            take(t, at - base);
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
    while (t && !(atomic_load(&t->base) && t->twins.segment == s))
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
    if (t->twins.twin)
        munmap(t->twins.twin, t->twins.bytes);
    t->twins.twin = NULL;
    twins_fini(&t->twins);
}

static keel_status entry_fill(struct tracked *t, struct client *c, keel_segment *s)
{
    int slot = (int)page_rank(c->page, c->rank)->slot;
    void *twin =
        mmap(NULL, s->map_bytes[slot], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    keel_status status = twins_init(&t->twins, c, s, atomic_load(&s->map[slot]), twin == MAP_FAILED ? NULL : twin);
    t->twins.user = t;
    t->twins.protect = view_protect;
    t->twins.unused = twin_unused;
    return twin == MAP_FAILED ? KEEL_ERR_NOMEM : status;
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
    status = entry_fill(t, c, s);
    if (status == KEEL_OK)
        status = handle_faults();
    if (status == KEEL_OK && mprotect(view, t->twins.bytes, PROT_READ))
        status = KEEL_ERR_SYSTEM;
    if (status == KEEL_OK) {
        atomic_store(&t->base, (uintptr_t)view);
        segment_seen(s, (int)page_rank(c->page, c->rank)->slot, false);
    } else {
        entry_clear(t);
    }
    return status;
}

/* Any byte of the segment that the caller could store into. */
static bool node_has_any(const struct client *c, const keel_segment *s)
{
    uint32_t slot = page_rank(c->page, c->rank)->slot;
    int r = 0;
    while (r < c->size && !(s->part_bytes[r] && page_rank(c->page, r)->slot == slot))
        r++;
    return r < c->size;
}

keel_status call_segment_track(keel_segment *segment)
{
    struct client *c = &process_client;
    if (!c->ready || !segment || segment->retired)
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    if (segment->redundancy == KEEL_REDUNDANCY_NONE || !node_has_any(c, segment))
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

bool track_is_clean(void)
{
    bool clean = true;
    pthread_mutex_lock(&track_lock);
    for (struct tracked *t = atomic_load(&tracked_first); t && clean; t = t->next)
        clean = !atomic_load(&t->base) || twins_clean(&t->twins);
    pthread_mutex_unlock(&track_lock);
    return clean;
}

void track_touch(const void *dst, size_t len)
{
    uintptr_t from = (uintptr_t)dst, to = from + len;
    for (struct tracked *t = atomic_load(&tracked_first); t; t = t->next) {
        uintptr_t base = atomic_load(&t->base), at = from > base ? from : base;
        while (base && at < to && at < base + t->twins.bytes) {
            (void)__atomic_fetch_or((uint8_t *)at, 0, __ATOMIC_RELAXED); // NOLINT(performance-no-int-to-ptr)
            at = base + ((at - base) / t->twins.granule + 1) * t->twins.granule;
        }
    }
}

/* ---- flush ---- */

static keel_status flush(const keel_segment *segment, bool neighbours)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    if (segment && segment->retired)
        return KEEL_ERR_ARG;
    keel_status status = KEEL_OK;
    pthread_mutex_lock(&track_lock);
    for (struct tracked *t = atomic_load(&tracked_first); t; t = t->next) {
        if (!atomic_load(&t->base) || (segment && t->twins.segment != segment))
            continue;
        keel_status one = twins_flush(&t->twins, neighbours);
        if (status == KEEL_OK)
            status = one;
    }
    pthread_mutex_unlock(&track_lock);
    return status;
}

keel_status call_update_flush(keel_segment *segment)
{
    return flush(segment, false);
}

keel_status call_update_flush_all(keel_segment *segment)
{
    return flush(segment, true);
}

/* ---- updates that the program tells of ---- */

keel_status call_update_begin(keel_segment *segment, size_t offset, size_t len, void **address)
{
    uint8_t *at;
    keel_status status = update_begin(&process_client, segment, offset, len, &at);
    if (address)
        *address = at;
    return status;
}

keel_status call_update_end(keel_segment *segment, size_t offset, size_t len)
{
    return update_end(&process_client, segment, offset, len);
}
