/* A job begins with what another one has saved (`keelrun --restore`), in three meetings:
 *
 *   each rank fills its parts of the segments and a side of its kept memory from its file, and says so in its root
 *   ── all meet ── the lowest living rank does the same for those who have not and are dead for good ── all meet
 *   ── each rank does what that one has left, if it died ── all meet
 *
 * Whoever is not dead for good has filled its parts before the first meeting ends, so what a root says afterwards is
 * true until the end: who takes a rank over goes on by its root, and by the number of meetings that count. Several who
 * fill the same write the same, and nobody goes on before all have done so. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/keep/save.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"

enum { BLOCK = 1 << 20 };
static const char here[] = "keel_keep_restore";

struct reading {
    struct client *c;
    int rank; /* whose file it is */
    struct save_file file;
    char why[SAVE_WHY];
    uint8_t *block;
};

static keel_status refused(const struct reading *r)
{
    log_error("%s: %s", here, r->why);
    return KEEL_ERR_SYSTEM;
}

static keel_status next(struct reading *r, void *data, size_t len)
{
    return save_next(&r->file, data, len, r->why) ? KEEL_OK : refused(r);
}

static keel_status fill(struct reading *r, keel_segment *s, size_t at, size_t len)
{
    keel_status status = KEEL_OK;
    for (size_t i = 0; i < len && status == KEEL_OK; i += BLOCK) {
        size_t n = len - i < BLOCK ? len - i : BLOCK;
        status = next(r, r->block, n);
        if (status == KEEL_OK)
            status = rma_put(r->c, s, r->rank, at + i, r->block, n);
        FAULT_POINT("save.loading");
    }
    return status;
}

/* The program has allocated what it had when it was saved. */
static keel_status compare(struct reading *r, const struct save_head *h, struct keel_segment **s, size_t n)
{
    if (h->segments != n) {
        log_error("%s: %llu segments were saved, and %zu have been allocated", here, (unsigned long long)h->segments,
                  n);
        return KEEL_ERR_MISMATCH;
    }
    for (size_t i = 0; i < n; i++) {
        struct save_part p;
        keel_status status = next(r, &p, sizeof p);
        if (status != KEEL_OK)
            return status;
        const uint64_t bytes = s[i]->part_bytes[r->rank];
        if (p.bytes == bytes && p.redundancy == (uint64_t)s[i]->redundancy)
            continue;
        log_error(
            "%s: segment %u (as keelctl verify counts) was saved with %llu bytes and %llu further copies of rank %d's "
            "part, and is allocated with %llu and %d",
            here, s[i]->index, (unsigned long long)p.bytes, (unsigned long long)p.redundancy, r->rank,
            (unsigned long long)bytes, (int)s[i]->redundancy);
        return KEEL_ERR_MISMATCH;
    }
    return KEEL_OK;
}

static keel_status read_head(struct reading *r, const struct save_manifest *m, struct save_head *h)
{
    keel_status status = next(r, h, sizeof *h);
    if (status != KEEL_OK)
        return status;
    if (memcmp(h->magic, SAVE_MAGIC, sizeof h->magic) != 0 || h->order != SAVE_ORDER || h->version != m->version ||
        h->ranks != m->ranks || h->rank != (uint64_t)r->rank) {
        log_error("%s: %s is not rank %d's file of the save, or of another kind of machine", here, r->file.path,
                  r->rank);
        return KEEL_ERR_SYSTEM;
    }
    return KEEL_OK;
}

static keel_status read_kept(struct reading *r, const struct save_head *h)
{
    struct keep *k = r->c->keep;
    struct keep_table t;
    keel_status status = next(r, &t, sizeof t);
    if (status != KEEL_OK)
        return status;
    if (!keep_table_is_sound(&t, k->room) || t.used != h->kept_bytes) {
        log_error("%s: rank %d has kept %llu bytes, and there is room for %zu", here, r->rank,
                  (unsigned long long)h->kept_bytes, k->room);
        return KEEL_ERR_MISMATCH;
    }
    status = rma_put(r->c, k->segment, r->rank, keep_table_at(k->room, 0), &t, sizeof t);
    return status == KEEL_OK ? fill(r, k->segment, keep_bytes_at(k->room, 0), t.used) : status;
}

static keel_status read_all(struct reading *r, const struct save_manifest *m)
{
    struct save_head h;
    const size_t n = keep_segments(r->c, NULL);
    struct keel_segment **s = calloc(n + 1, sizeof(struct keel_segment *));
    keel_status status = s ? read_head(r, m, &h) : KEEL_ERR_NOMEM;
    if (s)
        (void)keep_segments(r->c, s);
    if (status == KEEL_OK)
        status = compare(r, &h, s, n);
    for (size_t i = 0; i < n && status == KEEL_OK; i++)
        status = fill(r, s[i], 0, s[i]->part_bytes[r->rank]);
    if (status == KEEL_OK)
        status = read_kept(r, &h);
    free(s);
    return status;
}

/* where: the manifest, from keelrun; or the folder. */
static keel_status read_file(struct client *c, int rank, const char *where, uint64_t *version)
{
    struct save_manifest m = {0};
    char path[SAVE_PATH], folder[SAVE_PATH];
    struct reading r = {.c = c, .rank = rank, .block = malloc(BLOCK)};
    if (!r.block)
        return KEEL_ERR_NOMEM;
    keel_status status = save_find(where, path, r.why) && save_manifest_read(path, &m, r.why) ? KEEL_OK : refused(&r);
    save_folder(folder, path);
    if (status == KEEL_OK) {
        *version = m.version;
        if (m.ranks != (uint64_t)c->size) {
            log_error("%s: %s was saved by %llu ranks, and this job has %d", here, folder, (unsigned long long)m.ranks,
                      c->size);
            status = KEEL_ERR_MISMATCH;
        } else if (!save_open(&r.file, folder, m.rank[rank].name, r.why)) {
            status = refused(&r);
        } else {
            status = read_all(&r, &m);
            bool good = save_check(&r.file, &m.rank[rank], r.why); /* it closes */
            if (status == KEEL_OK && !good)
                status = refused(&r);
        }
        save_manifest_free(&m);
    }
    free(r.block);
    return status;
}

/* All of it is there, says the root, and it becomes the version of all in the last meeting. */
static keel_status mark(struct client *c, int rank, uint64_t version, uint64_t last)
{
    keel_segment *s = c->keep->segment;
    const struct keep_side side = {.version = version, .at = last};
    keel_status status = rma_put(c, s, rank, offsetof(struct keep_root, side), &side, sizeof side);
    FAULT_POINT("save.loaded");
    if (status == KEEL_OK)
        status = rma_put(c, s, rank, offsetof(struct keep_root, loaded), &last, sizeof last);
    return status;
}

static keel_status load_rank(struct client *c, int rank, const char *where, uint64_t last)
{
    uint64_t version = 0;
    keel_status status = read_file(c, rank, where, &version);
    return status == KEEL_OK ? mark(c, rank, version, last) : status;
}

/* Whoever has nothing after the first meeting is dead for good. */
static keel_status load_dead(struct client *c, const char *where, uint64_t last)
{
    keel_status status = KEEL_OK;
    for (int r = 0; r < c->size && status == KEEL_OK; r++) {
        uint64_t loaded;
        status = rma_get_strong(c, c->keep->segment, r, offsetof(struct keep_root, loaded), &loaded, sizeof loaded);
        if (status == KEEL_OK && !loaded)
            status = load_rank(c, r, where, last);
        if (status == KEEL_ERR_DATA_LOST)
            log_error("%s: what rank %d has kept is lost: no copy of it is left", here, r);
    }
    return status;
}

/* What is done before a meeting, behind which so many more are to come. k->load_filled: of the meeting before, whether
 * somebody has said in it that nothing is left; a process that takes a rank over does not know, and looks. */
static void before_meeting(struct client *c, const char *where, uint64_t last, uint64_t more)
{
    struct keep *k = c->keep;
    const bool fills = more ? keep_is_lowest(c) : !k->load_filled;
    k->load_filled = false;
    k->load_status = KEEL_OK;
    if (more == LOAD_MEETINGS - 1) {
        k->load_status = load_rank(c, c->rank, where, last);
    } else if (fills) {
        k->load_status = load_dead(c, where, last);
        k->load_filled = k->load_status == KEEL_OK;
    }
}

keel_status keep_load_files(struct client *c, const char *where)
{
    struct keep *k = c->keep;
    struct keep_root root;
    keel_status status = keep_root_of(c, c->rank, &root);
    const uint64_t last = status == KEEL_OK && root.loaded ? root.loaded : c->collectives + LOAD_MEETINGS;
    while (status == KEEL_OK && c->collectives < last) {
        const uint64_t meeting = c->collectives + 1, more = last - meeting;
        if (k->loading != meeting) /* else it ended by its time-out, and goes on */
            before_meeting(c, where, last, more);
        k->loading = meeting;
        status = keep_agree(c, here, more << 32, k->load_status, c->rank, k->load_filled, &k->load_filled);
    }
    return status;
}
