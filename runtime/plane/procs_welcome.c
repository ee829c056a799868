/* What a process is handed when it becomes a rank: who it is, and the memory that it shares with its agent and with the
 * other ranks of the node. */
#include "runtime/plane/procs_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"
#include "runtime/hall/hall.h"

static struct intent_page *make_intents(int *fd, uint64_t *inode)
{
    struct stat file;
    *fd = memfd_create("keel-intents", MFD_CLOEXEC);
    if (*fd < 0)
        return NULL;
    if (ftruncate(*fd, sizeof(struct intent_page)) == 0 && fstat(*fd, &file) == 0) {
        void *m = mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        *inode = file.st_ino;
        if (m != MAP_FAILED)
            return m;
    }
    close(*fd);
    return NULL;
}

/* The memory in which this node's ranks talk; it costs what they use of it. Without it they talk through us: no
 * error. */
static void make_hall(struct plane *p)
{
    size_t bytes = hall_bytes(p->page, (uint32_t)p->agent.self);
    if (p->hall_fd >= 0)
        return;
    p->hall_fd = memfd_create("keel-hall", MFD_CLOEXEC);
    if (p->hall_fd >= 0 && ftruncate(p->hall_fd, (off_t)bytes) != 0)
        log_warn("the ranks of this node talk through their agent: %s", strerror(errno));
}

bool procs_welcome(struct plane *p, struct process *k, struct life life)
{
    struct agent *a = &p->agent;
    int intents_fd = -1, shm_fds[TP_SHM_FDS];
    struct tp_ep *ep;
    struct conn *c = ranks_conn(a, k->proc);
    make_hall(p);
    k->failure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!c || k->failure_fd < 0 || !(k->intents = make_intents(&intents_fd, &k->intents_inode)) ||
        tp_shm_create(p->shm, c, shm_fds, &ep) != KEEL_OK) {
        if (intents_fd >= 0)
            close(intents_fd);
        return false;
    }
    if (!counts_begin(p, life.rank, &k->intents->counters))
        log_warn("no memory to count what rank %d does", life.rank);
    struct control_welcome w;
    ranks_welcome(a, k->proc, life, ep, k->intents, &w);
    w.secure = p->config.settings->secure;
    w.range_base = p->config.settings->range.base;
    w.range_bytes = p->config.settings->range.bytes;
    snprintf(w.host, sizeof w.host, "%s", p->hosts.of[0]);
    for (int i = 1; i < p->hosts.n; i++)
        snprintf(w.more[i - 1], sizeof w.more[0], "%s", p->hosts.of[i]);
    snprintf(w.provider, sizeof w.provider, "%s", p->provider);
    int fds[PROCS_WELCOME_FDS] = {p->page_fd,   intents_fd, shm_fds[0],
                                  shm_fds[1],   shm_fds[2], p->hall_fd >= 0 ? p->hall_fd : p->page_fd,
                                  k->failure_fd};
    procs_send_packet(k, &w, sizeof w, fds, PROCS_WELCOME_FDS);
    close(intents_fd);
    for (int i = 0; i < TP_SHM_FDS; i++)
        close(shm_fds[i]);
    return true;
}
