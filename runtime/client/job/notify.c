/* <keel/failure.h> for the process: the instance's answers, and a thread that waits for deaths.
 *
 * The agent counts up an eventfd at every view that has deaths (page first). The thread, started at the first need,
 * reads it, makes the user's descriptor readable and calls the callback. Two descriptors, for two readers of one
 * eventfd would take its events from each other. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/export.h"
#include "runtime/client/api/calls.h"
#include "runtime/base/log.h"
#include "runtime/client/job/failure.h"
#include "runtime/client/job/notify.h"
#include "runtime/client/job/process.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int agent_fd; /* set by keel_init */
    int user_fd, stop_fd;
    bool running, calling;
    pthread_t thread;
    struct ends *ends; /* the thread's */
    void (*callback)(const keel_failure *failure, void *arg);
    void *arg;
    uint64_t told;     /* failures up to this epoch were told to the callback */
    uint64_t seen;     /* and up to this one seen by keel_failures */
    uint32_t cut_told; /* page->cut_off, as it was told */
} notify = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER, .agent_fd = -1, .user_fd = -1, .stop_fd = -1};

/* What the thread polls and writes: its own, for it may run first when notify_fini has forgotten those above. */
struct ends {
    int agent_fd, user_fd, stop_fd;
    bool orphan; /* nobody joins it: it closes them. Under the lock. */
};

void notify_init(int fd)
{
    notify.agent_fd = fd;
}

/* Lock held. */
static bool any_unseen(void)
{
    size_t n = 0;
    (void)failure_list(&process_client, notify.seen, NULL, 0, &n, NULL);
    return n > 0;
}

static uint64_t epoch_now(void)
{
    return atomic_load_explicit(&process_client.page->epoch, memory_order_acquire);
}

/* The callback may be another one, or none, from one failure to the next. Lock held. */
static void call(const keel_failure *failures, size_t n)
{
    for (size_t i = 0; i < n && notify.callback; i++) {
        void (*callback)(const keel_failure *, void *) = notify.callback;
        void *arg = notify.arg;
        if (failures[i].epoch <= notify.told && failures[i].verdict != KEEL_CUT_OFF)
            continue; /* it came before this callback */
        notify.calling = true;
        pthread_mutex_unlock(&notify.lock);
        callback(&failures[i], arg);
        pthread_mutex_lock(&notify.lock);
        notify.calling = false;
        pthread_cond_broadcast(&notify.idle);
    }
}

/* That this node is cut off. Lock held. */
static void tell_cut_off(void)
{
    uint32_t cut = atomic_load_explicit(&process_client.page->cut_off, memory_order_acquire);
    keel_failure f = {.rank = -1, .node = process_client.node, .verdict = KEEL_CUT_OFF};
    if (cut == notify.cut_told)
        return;
    notify.cut_told = cut;
    f.epoch = epoch_now();
    if (cut % 2)
        call(&f, 1);
}

/* Lock held. */
static void tell_callback(void)
{
    size_t n, max = process_client.page->members + process_client.page->ranks;
    keel_failure *failures = notify.callback ? malloc(max * sizeof *failures) : NULL;
    uint64_t until;
    if (!failures) {
        if (notify.callback)
            log_error("out of memory: a failure is not told");
        return;
    }
    if (failure_list(&process_client, notify.told, failures, max, &n, &until) == KEEL_OK) {
        call(failures, n);
        if (until > notify.told)
            notify.told = until;
    }
    free(failures);
}

static void wait_and_tell(const struct ends *e)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = e->agent_fd, .events = POLLIN}, {.fd = e->stop_fd, .events = POLLIN}};
        eventfd_t count;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        if (fds[1].revents)
            return;
        if (!(fds[0].revents & POLLIN) || eventfd_read(e->agent_fd, &count))
            continue;
        pthread_mutex_lock(&notify.lock);
        if (any_unseen())
            eventfd_write(e->user_fd, 1);
        tell_callback();
        tell_cut_off();
        pthread_mutex_unlock(&notify.lock);
    }
}

static void close_ends(const struct ends *e)
{
    const int fds[] = {e->agent_fd, e->user_fd, e->stop_fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void *run(void *arg)
{
    struct ends *e = arg;
    pthread_setname_np(pthread_self(), "keel-failures");
    wait_and_tell(e);
    pthread_mutex_lock(&notify.lock);
    bool orphan = e->orphan;
    pthread_mutex_unlock(&notify.lock);
    if (orphan) {
        close_ends(e);
        free(e);
    }
    return NULL;
}

/* Lock held. */
static keel_status start(void)
{
    if (!process_client.ready || notify.agent_fd < 0)
        return KEEL_ERR_STATE;
    if (notify.running)
        return KEEL_OK;
    sigset_t all, old;
    struct ends *e = malloc(sizeof *e);
    if (!e)
        return KEEL_ERR_SYSTEM;
    *e = (struct ends){notify.agent_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                       false};
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    notify.running = e->user_fd >= 0 && e->stop_fd >= 0 && !pthread_create(&notify.thread, NULL, run, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!notify.running) {
        e->agent_fd = -1; /* stays, for another try */
        close_ends(e);
        free(e);
        return KEEL_ERR_SYSTEM;
    }
    notify.ends = e;
    notify.user_fd = e->user_fd;
    notify.stop_fd = e->stop_fd;
    if (any_unseen())
        eventfd_write(notify.user_fd, 1);
    return KEEL_OK;
}

void notify_fini(void)
{
    pthread_mutex_lock(&notify.lock);
    bool running = notify.running, inside = running && pthread_equal(pthread_self(), notify.thread);
    struct ends *e = notify.ends, idle = {notify.agent_fd, -1, -1, false};
    notify.running = false;
    notify.callback = NULL;
    notify.ends = NULL;
    notify.agent_fd = notify.user_fd = notify.stop_fd = -1;
    if (inside)
        e->orphan = true; /* this is the callback: what the thread polls stays open until it has ended */
    pthread_mutex_unlock(&notify.lock);
    if (!running) {
        close_ends(&idle);
        return;
    }
    eventfd_write(e->stop_fd, 1);
    if (inside) {
        pthread_detach(notify.thread);
        return;
    }
    pthread_join(notify.thread, NULL);
    close_ends(e);
    free(e);
}

void notify_forget(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    notify.lock = unlocked;
    notify.running = notify.calling = false;
    notify.callback = NULL;
    notify.ends = NULL;
    notify.agent_fd = notify.user_fd = notify.stop_fd = -1;
}

/* ---- the calls ---- */

KEEL_EXPORT const char *keel_verdict_name(keel_verdict verdict)
{
    return failure_verdict_name(verdict);
}

int call_node_count(void)
{
    return process_client.page ? (int)atomic_load_explicit(&process_client.page->next_id, memory_order_acquire) : 0;
}

keel_status call_node_status(int node, int timeout_ms, keel_verdict *verdict)
{
    return process_client.ready ? failure_node_status(&process_client, node, timeout_ms, verdict) : KEEL_ERR_STATE;
}

keel_status call_rank_status(int rank, int timeout_ms, keel_verdict *verdict)
{
    return process_client.ready ? failure_rank_status(&process_client, rank, timeout_ms, verdict) : KEEL_ERR_STATE;
}

keel_status call_failures(uint64_t since_epoch, keel_failure *out, size_t max, size_t *count, uint64_t *epoch)
{
    eventfd_t writes;
    uint64_t until;
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    pthread_mutex_lock(&notify.lock);
    keel_status status = failure_list(&process_client, since_epoch, out, max, count, &until);
    if (status == KEEL_OK && until >= notify.seen) {
        notify.seen = until;
        if (notify.running)
            (void)eventfd_read(notify.user_fd, &writes); /* what comes after `until` makes it readable again */
    }
    pthread_mutex_unlock(&notify.lock);
    if (status == KEEL_OK && epoch)
        *epoch = until;
    return status;
}

KEEL_EXPORT int keel_failure_fd(void)
{
    if (replica_map_is_used(&process_client.replicas))
        return -1; /* a set of replicas is whole, or ends */
    pthread_mutex_lock(&notify.lock);
    int fd = start() == KEEL_OK ? notify.user_fd : -1;
    pthread_mutex_unlock(&notify.lock);
    return fd;
}

keel_status call_on_failure(void (*callback)(const keel_failure *failure, void *arg), void *arg)
{
    pthread_mutex_lock(&notify.lock);
    keel_status status = start();
    while (status == KEEL_OK && notify.calling && !pthread_equal(pthread_self(), notify.thread))
        pthread_cond_wait(&notify.idle, &notify.lock);
    if (status == KEEL_OK) {
        notify.callback = callback;
        notify.arg = arg;
        notify.told = epoch_now();
    }
    pthread_mutex_unlock(&notify.lock);
    return status;
}

keel_status call_links(keel_link *out, size_t max, size_t *count)
{
    return process_client.ready ? failure_links(&process_client, out, max, count) : KEEL_ERR_STATE;
}
