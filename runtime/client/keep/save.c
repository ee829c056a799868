/* A version is written to files, with all segments as they are then (keel_keep_save): in two meetings behind that of
 * its commit, so that all stand still meanwhile.
 *
 *   all commit ── each writes its file, and says so in its root ── all meet ── one writes the manifest ── all meet
 *
 * Each step can be done again by whoever takes a rank over in it: a file is the same whoever writes it, and so is the
 * manifest. The one is whoever finds no living rank below its own; two may, and write the same. It also writes for
 * ranks that nobody runs. If it dies, and nobody takes it over, there is no new manifest, and the old one holds.
 *
 * What a rank says in a meeting is in its root before it enters. So whoever takes it over says the same, and names
 * nothing that the others were told had failed: their files are gone, and their segments may have changed. */
#include "runtime/client/keep/save.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"

enum { BLOCK = 1 << 20 };
static const char here[] = "keel_keep_save";

/* What is said in a meeting: a status, or that the manifest is written. */
enum { SAID_BITS = 8, SAID_NAMED = 0xff };

static uint64_t said_word(uint64_t meeting, keel_status status, bool named)
{
    return meeting << SAID_BITS | (named ? SAID_NAMED : (uint8_t)-status);
}

/* False: nothing yet, in that meeting. */
static bool said_in(uint64_t word, uint64_t meeting, keel_status *status, bool *named)
{
    const uint8_t what = (uint8_t)word;
    *named = what == SAID_NAMED;
    *status = *named ? KEEL_OK : (keel_status)-what;
    return word >> SAID_BITS == meeting;
}

size_t keep_segments(const struct client *c, struct keel_segment **out)
{
    size_t n = 0;
    for (uint32_t next = 0;; n++) {
        struct keel_segment *found = NULL;
        for (struct keel_segment *s = c->segments.first; s; s = s->next)
            if (s != c->segments.system && !s->what && !s->group && !s->attached && !s->freed && !s->retired &&
                s->index >= next && (!found || s->index < found->index))
                found = s;
        if (!found)
            return n;
        if (out)
            out[n] = found;
        next = found->index + 1;
    }
}

static struct save_job job_of(const struct client *c)
{
    return (struct save_job){.number = c->job, .secret = c->secret};
}

/* What is being written, or why it cannot be. */
struct writing {
    struct client *c;
    struct save_file file;
    char why[SAVE_WHY];
    keel_status status;
    uint8_t *block;
};

static void append(struct writing *w, const void *data, size_t len)
{
    if (w->status == KEEL_OK && !save_append(&w->file, data, len, w->why)) {
        log_error("%s: %s", here, w->why);
        w->status = KEEL_ERR_SYSTEM;
    }
}

static void append_part(struct writing *w, keel_segment *s, int rank, size_t at, size_t len)
{
    for (size_t i = 0; i < len && w->status == KEEL_OK; i += BLOCK) {
        size_t n = len - i < BLOCK ? len - i : BLOCK;
        w->status = rma_get(w->c, s, rank, at + i, w->block, n);
        append(w, w->block, n);
        FAULT_POINT("save.writing");
    }
}

static void append_all(struct writing *w, int rank, uint64_t version, int side, struct keel_segment **s, size_t n)
{
    struct keep *k = w->c->keep;
    struct keep_table t;
    if (w->status == KEEL_OK)
        w->status = keep_table_of(w->c, here, rank, side, &t);
    if (w->status != KEEL_OK)
        return;
    const struct save_head head = {.magic = SAVE_MAGIC,
                                   .order = SAVE_ORDER,
                                   .ranks = (uint64_t)w->c->size,
                                   .rank = (uint64_t)rank,
                                   .version = version,
                                   .segments = n,
                                   .kept_bytes = t.used};
    append(w, &head, sizeof head);
    for (size_t i = 0; i < n; i++)
        append(w, &(struct save_part){s[i]->part_bytes[rank], (uint64_t)s[i]->redundancy}, sizeof(struct save_part));
    for (size_t i = 0; i < n && w->status == KEEL_OK; i++) {
        append_part(w, s[i], rank, 0, s[i]->part_bytes[rank]);
        if (w->status == KEEL_ERR_DATA_LOST)
            log_error("%s: rank %d's part of segment %u (as keelctl verify counts) is lost: nothing can be saved until "
                      "that is freed",
                      here, rank, s[i]->index);
    }
    append(w, &t, sizeof t);
    append_part(w, k->segment, rank, keep_bytes_at(k->room, side), t.used);
}

/* Of a rank that is alive, or was when all committed the version; else it cannot be saved with the others'. */
static keel_status side_of(const struct client *c, int rank, uint64_t version, const struct keep_root *root, int *side)
{
    *side = keep_choose(root, c->collectives);
    if (*side >= 0 && root->side[*side].version == version)
        return KEEL_OK;
    log_error("%s: rank %d %s before it had made version %llu: there is nothing to save with the others'", here, rank,
              keep_has_left(c, rank) ? "has left (keel_finalize)" : "died", (unsigned long long)version);
    return KEEL_ERR_RANK_DEAD;
}

static keel_status write_rank(struct client *c, int rank, uint64_t version, const struct keep_root *root,
                              struct save_entry *e)
{
    int side;
    keel_status status = side_of(c, rank, version, root, &side);
    if (status != KEEL_OK)
        return status;
    const struct save_job job = job_of(c);
    const size_t n = keep_segments(c, NULL);
    struct keel_segment **segments = calloc(n + 1, sizeof(struct keel_segment *));
    struct writing w = {.c = c, .block = malloc(BLOCK)};
    w.status = segments && w.block ? KEEL_OK : KEEL_ERR_NOMEM;
    save_name(e->name, &job, version, (uint64_t)rank);
    bool open = w.status == KEEL_OK && save_create(&w.file, root->folder, e->name, w.why);
    if (w.status == KEEL_OK && !open) {
        log_error("%s: %s", here, w.why);
        w.status = KEEL_ERR_SYSTEM;
    }
    if (open) {
        (void)keep_segments(c, segments);
        append_all(&w, rank, version, side, segments, n);
        e->bytes = w.file.bytes;
        if (w.status == KEEL_OK && !save_finish(&w.file, e->sum, w.why)) {
            log_error("%s: %s", here, w.why);
            w.status = KEEL_ERR_SYSTEM;
        } else if (w.status != KEEL_OK) {
            save_drop(&w.file);
        }
    }
    free(w.block);
    free(segments);
    return w.status;
}

/* That the rank's file is there, or why not. */
static keel_status say_written(struct client *c, int rank, const struct save_entry *e, keel_status status)
{
    keel_segment *s = c->keep->segment;
    struct keep_file f = {.bytes = e->bytes};
    memcpy(f.sum, e->sum, sizeof f.sum);
    const uint64_t word = said_word(c->keep->saved_at + 1, status, false);
    keel_status put = rma_put(c, s, rank, offsetof(struct keep_root, file), &f, sizeof f);
    if (put == KEEL_OK)
        put = rma_put(c, s, rank, offsetof(struct keep_root, said), &word, sizeof word);
    return status == KEEL_OK ? put : status;
}

/* The own file, and that it is there. */
static keel_status write_own(struct client *c, uint64_t version)
{
    struct keep_root root;
    struct save_entry e = {0};
    bool named;
    keel_status said, status = keep_root_of(c, c->rank, &root);
    if (status != KEEL_OK || said_in(root.said[0], c->keep->saved_at + 1, &said, &named))
        return status == KEEL_OK ? said : status;
    status = write_rank(c, c->rank, version, &root, &e);
    FAULT_POINT("save.written");
    status = say_written(c, c->rank, &e, status);
    FAULT_POINT("save.told");
    return status;
}

bool keep_is_lowest(const struct client *c)
{
    for (int r = 0; r < c->rank; r++)
        if ((int32_t)(atomic_load_explicit(&page_rank(c->page, r)->where, memory_order_acquire) >> 32) >= 0)
            return false;
    return true;
}

static keel_status fill_manifest(struct client *c, uint64_t version, const char *folder, struct save_manifest *m)
{
    const struct save_job job = job_of(c);
    m->version = version;
    for (int r = 0; r < c->size; r++) {
        struct keep_root root;
        struct save_entry *e = &m->rank[r];
        keel_status status = keep_root_of(c, r, &root);
        keel_status said;
        bool named;
        if (status == KEEL_OK && said_in(root.said[0], c->keep->saved_at + 1, &said, &named)) {
            save_name(e->name, &job, version, (uint64_t)r);
            e->bytes = root.file.bytes;
            memcpy(e->sum, root.file.sum, sizeof e->sum);
            status = said;
        } else if (status == KEEL_OK) { /* nobody runs it */
            memcpy(root.folder, folder, strlen(folder) + 1);
            status = say_written(c, r, e, write_rank(c, r, version, &root, e));
        }
        if (status != KEEL_OK) {
            c->keep->about = r;
            return status;
        }
    }
    return KEEL_OK;
}

static keel_status write_manifest(struct client *c, uint64_t version, const char *folder)
{
    const struct save_job job = job_of(c);
    struct save_manifest m;
    char why[SAVE_WHY];
    if (!save_manifest_room(&m, (uint64_t)c->size))
        return KEEL_ERR_NOMEM;
    keel_status status = fill_manifest(c, version, folder, &m);
    FAULT_POINT("save.naming");
    if (status == KEEL_OK && !save_manifest_write(folder, &job, &m, why)) {
        log_error("%s: %s", here, why);
        status = KEEL_ERR_SYSTEM;
    }
    FAULT_POINT("save.named");
    if (status == KEEL_OK)
        save_sweep(folder, &m);
    save_manifest_free(&m);
    return status;
}

/* What this rank has to say in the second meeting, and says in its root. */
static keel_status name_own(struct client *c, uint64_t version, const char *folder, bool *named)
{
    struct keep *k = c->keep;
    struct keep_root root;
    keel_status said, status = keep_root_of(c, c->rank, &root);
    const uint64_t meeting = k->saved_at + SAVE_MEETINGS;
    const bool before = status == KEEL_OK && said_in(root.said[1], meeting, &said, named);
    k->about = before && root.about < (uint64_t)c->size ? (int)root.about : c->rank;
    if (status != KEEL_OK || before)
        return before ? said : status;
    if (k->save_status == KEEL_OK && keep_is_lowest(c)) {
        status = write_manifest(c, version, folder);
        *named = status == KEEL_OK;
    }
    const uint64_t word = said_word(meeting, status, *named);
    const uint64_t about = (uint64_t)k->about;
    keel_status put = keep_put(c, offsetof(struct keep_root, about), &about, sizeof about);
    if (put == KEEL_OK)
        put = keep_put(c, offsetof(struct keep_root, said) + sizeof word, &word, sizeof word);
    return status == KEEL_OK ? put : status;
}

/* It has failed, and its files are in the way of the next one; but for what a manifest names, which was written all
 * the same. */
static void give_up(struct client *c, uint64_t version, const char *folder)
{
    const struct save_job job = job_of(c);
    save_forget(folder, &job, version, (uint64_t)c->rank);
    if (keep_is_lowest(c))
        save_forget_all(folder, &job, version);
}

/* The second meeting. It is made whatever became of the first: who takes a rank over knows their number only. */
static keel_status name_all(struct client *c, uint64_t version, const char *folder)
{
    struct keep *k = c->keep;
    bool named = false, done = false;
    keel_status status = name_own(c, version, folder, &named);
    status = keep_agree(c, here, ~version, status, k->about, named, &done);
    if (c->collectives < k->saved_at + SAVE_MEETINGS)
        return status; /* it is gone on with by the same call */
    if (status == KEEL_OK && k->save_status == KEEL_OK && !done) {
        log_error("%s: version %llu: the rank that was to write the manifest has died", here,
                  (unsigned long long)version);
        status = KEEL_ERR_RANK_DEAD;
    }
    if (k->save_status != KEEL_OK)
        status = k->save_status;
    if (status != KEEL_OK)
        give_up(c, version, folder);
    return status;
}

keel_status keep_save_files(struct client *c, uint64_t version, const char *folder)
{
    struct keep *k = c->keep;
    bool done;
    keel_status status = KEEL_OK;
    if (c->collectives == k->saved_at) {
        keel_status mine = write_own(c, version);
        status = keep_agree(c, here, version + (keep_segments(c, NULL) << 48), mine, c->rank, false, &done);
        if (c->collectives == k->saved_at)
            return status; /* it is gone on with by the same call */
        k->save_status = status;
    }
    if (c->collectives == k->saved_at + 1)
        status = name_all(c, version, folder);
    if (c->collectives >= k->saved_at + SAVE_MEETINGS)
        k->saving = 0;
    return status;
}

keel_status keep_save(struct client *c, uint64_t version, const char *folder)
{
    struct keep *k = c->keep;
    if (!c->ready || !k || !k->segment || (k->saving && k->saving != version))
        return KEEL_ERR_STATE;
    if (!folder || !*folder || strnlen(folder, KEEP_FOLDER) == KEEP_FOLDER)
        return KEEL_ERR_ARG;
    if (!k->saving) {
        const struct save_job job = job_of(c);
        if (!k->entering && keep_is_lowest(c)) /* what ranks have left that died in a save */
            save_forget_all(folder, &job, k->version);
        keel_status status = keep_commit_in(c, version, folder);
        if (status != KEEL_OK)
            return status;
        k->saving = version;
        k->saved_at = c->collectives;
        k->save_status = KEEL_OK;
    }
    return keep_save_files(c, version, folder);
}
