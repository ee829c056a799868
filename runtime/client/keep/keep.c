/* What is registered, and the room for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/keep/save.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"

/* NULL: out of memory. */
static struct keep *room_of(struct client *c)
{
    if (!c->keep)
        c->keep = calloc(1, sizeof *c->keep);
    return c->keep;
}

void keep_end(struct client *c)
{
    free(c->keep);
    c->keep = NULL;
}

keel_status keep_put(struct client *c, size_t at, const void *src, size_t len)
{
    return rma_put(c, c->keep->segment, c->rank, at, src, len);
}

keel_status keep_root_of(struct client *c, int rank, struct keep_root *root)
{
    return rma_get_strong(c, c->keep->segment, rank, 0, root, sizeof *root);
}

/* A rank that has no memory takes part all the same, and all are told. */
keel_status keep_room(struct client *c, size_t bytes_per_rank)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    struct keep *k = room_of(c);
    if (k && k->segment)
        return KEEL_ERR_STATE;
    size_t bytes = keep_part_bytes(bytes_per_rank);
    keel_status able = !bytes ? KEEL_ERR_ARG : k ? KEEL_OK : KEEL_ERR_NOMEM;
    keel_segment *segment;
    keel_status status = segment_alloc_for(c, able, SEGMENT_OF_KEPT, bytes, &segment);
    if (status == KEEL_OK && k)
        keep_has_room(c, segment, bytes_per_rank);
    return status;
}

bool keep_wants_room(struct client *c, size_t bytes_per_rank, size_t *bytes)
{
    struct keep *k = room_of(c);
    *bytes = k ? keep_part_bytes(bytes_per_rank) : 0;
    return !k || !k->segment;
}

void keep_has_room(struct client *c, keel_segment *segment, size_t bytes_per_rank)
{
    struct keep *k = c->keep;
    k->segment = segment;
    k->room = bytes_per_rank;
    k->side = -1;
    k->restored = !c->restarted && !keep_begins_with();
}

/* Each page of it is there. */
static bool is_memory(const void *address, size_t bytes)
{
    unsigned char there[256];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = sizeof there * page;
    uintptr_t at = (uintptr_t)address & ~(page - 1), end = (uintptr_t)address + bytes;
    for (; at < end; at += most) {
        size_t n = end - at < most ? end - at : most;
        if (mincore((void *)at, n, there) != 0 && errno == ENOMEM) // NOLINT(performance-no-int-to-ptr)
            return false;
    }
    return true;
}

/* What the process may not do with it; NULL: nothing that the kernel speaks of. Memory that is shared may be protected
 * against writes for a while (keel_segment_track). Mappings come in the order of their addresses. */
static const char *is_forbidden(const void *address, size_t bytes)
{
    const uintptr_t at = (uintptr_t)address, end = at + bytes;
    const char *why = NULL;
    char part[128], *rest; /* of a line, whose first fields these are: FROM-TO rwxp */
    uintptr_t from = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    for (bool begins = true; f && !why && from < end && fgets(part, sizeof part, f);
         begins = strchr(part, '\n') != NULL) {
        if (!begins)
            continue;
        from = (uintptr_t)strtoull(part, &rest, 16);
        uintptr_t to = *rest == '-' ? (uintptr_t)strtoull(rest + 1, &rest, 16) : from;
        if (from < end && at < to && strlen(rest) > 4)
            why = rest[1] != 'r'                     ? "the process may not read it"
                  : rest[2] != 'w' && rest[4] == 'p' ? "the process may not write to it"
                                                     : NULL;
    }
    if (f)
        fclose(f);
    return why;
}

static keel_status refuse(const char *name, const char *why)
{
    log_error("keel_keep: %.*s: %s", KEEP_NAME, name ? name : "(no name)", why);
    return KEEL_ERR_ARG;
}

/* Ranges lie one behind the other. */
static uint64_t lay_out(struct keep_table *t)
{
    t->used = 0;
    for (uint64_t i = 0; i < t->ranges; i++) {
        t->entry[i].at = t->used;
        t->used += keep_rounded(t->entry[i].bytes);
    }
    return t->used;
}

static keel_status forget(struct keep *k, struct keep_entry *e)
{
    struct keep_table *t = &k->now;
    uint64_t i = (uint64_t)(e - t->entry);
    memmove(e, e + 1, (t->ranges - i - 1) * sizeof *e);
    memmove(&k->address[i], &k->address[i + 1], (t->ranges - i - 1) * sizeof *k->address);
    memset(&t->entry[--t->ranges], 0, sizeof *e);
    lay_out(t);
    return KEEL_OK;
}

keel_status keep_range(struct client *c, const char *name, void *address, size_t bytes)
{
    struct keep *k = c->keep;
    if (!c->ready || !k || !k->segment || k->entering)
        return KEEL_ERR_STATE;
    if (!name || !*name || strnlen(name, KEEP_NAME) == KEEP_NAME)
        return refuse(name, "a name has 1 to 47 bytes");
    struct keep_table *t = &k->now;
    struct keep_entry *e = (struct keep_entry *)keep_find(t, name);
    if (!address)
        return bytes ? refuse(name, "no address") : e ? forget(k, e) : refuse(name, "nothing of that name is kept");
    if (bytes > k->room || (uintptr_t)address + bytes < (uintptr_t)address)
        return bytes > k->room ? KEEL_ERR_LIMIT : refuse(name, "no such memory");
    if (!is_memory(address, bytes))
        return refuse(name, "the process has no memory at some of these addresses");
    const char *forbidden = is_forbidden(address, bytes);
    if (forbidden)
        return refuse(name, forbidden);
    if (!e && t->ranges == KEEP_RANGES)
        return KEEL_ERR_LIMIT;
    struct keep_table before = *t;
    if (!e) {
        e = &t->entry[t->ranges++];
        memcpy(e->name, name, strlen(name));
    }
    e->bytes = bytes;
    if (lay_out(t) > k->room) {
        *t = before;
        return KEEL_ERR_LIMIT;
    }
    k->address[e - t->entry] = address;
    return KEEL_OK;
}
