/* The world of a program with replicas, as its processes get it: the library that is preloaded, and the page that it
 * reads (base/world_page.h). */
#include "pm/keeld/keeld.h"

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/world_page.h"
#include "runtime/world/shadow.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_shared(const struct keeld *a)
{
    const struct job_settings *s = &a->job.settings;
    return replica_map_is_used(&s->replicas) && (s->world == SHARE_ONE || s->files == SHARE_ONE);
}

char *keeld_world_library(const struct keeld *a)
{
    char *path = is_shared(a) ? keeld_own_path("libkeel-world.so") : NULL;
    if (path && access(path, R_OK) != 0) {
        log_warn("each replica has a world of its own: %s: %s", path, strerror(errno));
        free(path);
        path = NULL;
    }
    return path;
}

static void fill_in(const struct keeld *a, int native, struct world_page *page)
{
    const struct job_settings *s = &a->job.settings;
    struct replica who = replica_of(&s->replicas, native);
    struct {
        char what[16];
        uint64_t job;
        int32_t rank;
        uint32_t unused;
    } of = {"world", a->launch.job_id, who.rank, 0};
    *page = (struct world_page){.magic = WORLD_MAGIC,
                                .rank = who.rank,
                                .set = who.set,
                                .node = keeld_rank_node(a, native),
                                .clocks = s->world == SHARE_ONE,
                                .files = s->files == SHARE_ONE,
                                .job = a->launch.job_id,
                                .began_ns = ((int64_t)JOB_ERA_S + s->began_s) * 1000000000,
                                .true_ns = (int64_t)clock_now_ns()};
    crypto_generichash(page->key, sizeof page->key, (const uint8_t *)&of, sizeof of, a->job.secret, SESSION_SECRET);
}

int keeld_world_open(const struct keeld *a, int rank)
{
    if (!is_shared(a) || rank < 0)
        return -1;
    int fd = memfd_create("keel-world", MFD_CLOEXEC);
    struct world_page *page = fd >= 0 && ftruncate(fd, sizeof *page) == 0
                                  ? mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                  : MAP_FAILED;
    if (page == MAP_FAILED) {
        log_warn("rank %d sees clocks and files of its own: %s", rank, strerror(errno));
        return fd;
    }
    fill_in(a, rank, page);
    munmap(page, sizeof *page);
    return fd;
}

/* ---- files, at the end ---- */

static bool has_partners(const struct keeld *a)
{
    return a->job.settings.on_death == DEATH_PARTNER;
}

/* The lowest set that is whole, or the last one that was; where partners do the part of the dead, the lowest that has
 * all who write. */
static int leading(const struct keeld *a)
{
    int last = 0;
    if (has_partners(a) && a->view.files >= 0)
        return a->view.files;
    for (int s = 0; s < a->job.settings.replicas.replicas; s++) {
        if (!a->view.loss[s].retired)
            return s;
        last = a->view.loss[s].epoch > a->view.loss[last].epoch ? s : last;
    }
    return last;
}

static void remove_of(const struct world_page *page, int set, enum shadow_kind kind, const char *path)
{
    char name[SHADOW_PATH];
    if (shadow_name(kind, page->job, set, page->rank, path, name))
        (void)unlink(name);
}

static void remove_beside(const struct world_page *page, enum shadow_kind kind, const char *path)
{
    remove_of(page, page->set, kind, path);
}

/* The nodes of a set that is retired, or has lost somebody, may be dead; and it has written what its replicas have. */
static void remove_of_the_dead(const struct keeld *a, const struct world_page *page, const char *path)
{
    for (int s = 0; s < a->job.settings.replicas.replicas; s++)
        if ((a->view.loss[s].retired || has_partners(a)) && s != page->set) {
            remove_of(page, s, SHADOW_OWN, path);
            remove_of(page, s, SHADOW_GONE, path);
            remove_of(page, s, SHADOW_MAKING, path);
        }
}

/* What several ranks have written is in the list of each, and the first one's turn does it. */
static void settle(const struct world_page *page, bool leads, const char *path)
{
    char own[SHADOW_PATH], gone[SHADOW_PATH];
    if (leads && page->set > 0 && shadow_name(SHADOW_OWN, page->job, page->set, page->rank, path, own) &&
        shadow_name(SHADOW_GONE, page->job, page->set, page->rank, path, gone)) {
        if (access(gone, F_OK) == 0)
            (void)unlink(path);
        else if (rename(own, path) != 0 && errno != ENOENT && errno != EISDIR)
            log_error("what set %d has written to %s is in %s: %s", page->set, path, own, strerror(errno));
    }
    if (!leads || access(path, F_OK) == 0)
        remove_beside(page, SHADOW_OWN, path);
    remove_beside(page, SHADOW_GONE, path);
    remove_beside(page, SHADOW_MAKING, path);
    remove_beside(page, SHADOW_BEFORE, path);
    remove_beside(page, SHADOW_NONE, path);
}

static void settle_all(const struct keeld *a, int fd)
{
    struct world_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return;
    uint32_t len = atomic_load(&page->written_len);
    page->written[WORLD_WRITTEN - 1] = '\0';
    for (uint32_t i = 0; i < len && i < WORLD_WRITTEN; i += (uint32_t)strlen(page->written + i) + 1) {
        settle(page, page->set == leading(a), page->written + i);
        if (page->set == leading(a))
            remove_of_the_dead(a, page, page->written + i);
    }
    munmap(page, sizeof *page);
}

void keeld_world_over(struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++)
        if (a->processes[i].world >= 0) {
            settle_all(a, a->processes[i].world);
            close(a->processes[i].world);
            a->processes[i].world = -1;
        }
}
