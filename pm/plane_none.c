/* The plane of a node without global memory: process management only, for programs that do not use Keel's memory. Each
 * node decides for itself; keelrun puts the nodes' ends together. No threads. */
#include "pm/plane.h"

#include "pm/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct slot {
    int rank;
    int fd;
};

struct plane {
    struct plane_config config;
    struct plane_callbacks callbacks;
    int wake;
    struct slot *slots;
    int slot_count;
    int running; /* ranks of this node that have not ended */
    bool over;
};

keel_status plane_create(const struct plane_config *config, const struct plane_callbacks *callbacks, struct plane **out,
                         struct plane_blob *blob)
{
    struct plane *p = pm_alloc(sizeof *p);
    p->config = *config;
    p->callbacks = *callbacks;
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake < 0) {
        free(p);
        return KEEL_ERR_SYSTEM;
    }
    blob->len = 0;
    *out = p;
    return KEEL_OK;
}

keel_status plane_start(struct plane *plane, const struct plane_blob *blobs)
{
    (void)blobs;
    for (int r = 0; r < plane->config.ranks; r++)
        plane->running += plane->config.rank_node[r] == plane->config.node;
    return KEEL_OK;
}

keel_status plane_process_started(struct plane *plane, int slot, int rank, uint32_t incarnation, int pid, int fd)
{
    (void)incarnation;
    (void)pid;
    if (slot >= plane->slot_count) {
        plane->slots = realloc(plane->slots, (size_t)(slot + 1) * sizeof *plane->slots);
        if (!plane->slots)
            return KEEL_ERR_NOMEM;
        plane->slot_count = slot + 1;
    }
    plane->slots[slot] = (struct slot){.rank = rank, .fd = fd};
    return KEEL_OK;
}

static void over(struct plane *p, int code, const char *why)
{
    if (p->over)
        return;
    p->over = true;
    p->callbacks.job_over(p->callbacks.user, code, why);
}

void plane_process_exited(struct plane *plane, int slot, int code, int signal)
{
    char why[128];
    int rank = plane->slots[slot].rank;
    if (rank < 0)
        return;
    plane->running--;
    if (code != 0) {
        snprintf(why, sizeof why, "rank %d on node %d ended with exit code %d", rank, plane->config.node, code);
        over(plane, code, why);
    } else if (signal != 0 && plane->config.on_failure == ON_FAILURE_ABORT) {
        snprintf(why, sizeof why, "rank %d on node %d was killed by signal %d (%s)", rank, plane->config.node, signal,
                 strsignal(signal));
        over(plane, 128 + signal, why);
    } else if (plane->running == 0) {
        over(plane, 0, NULL);
    }
}

void plane_stop_job(struct plane *plane, int code, const char *why)
{
    over(plane, code, why);
}

bool plane_is_local(const struct plane *plane)
{
    (void)plane;
    return true;
}

int plane_wake_fd(const struct plane *plane)
{
    return plane->wake;
}

void plane_dispatch(struct plane *plane)
{
    (void)plane;
}

void plane_destroy(struct plane *plane)
{
    if (!plane)
        return;
    for (int i = 0; i < plane->slot_count; i++)
        close(plane->slots[i].fd);
    free(plane->slots);
    close(plane->wake);
    free(plane);
}
