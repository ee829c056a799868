/* Start and end of a rank. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/counters.h"
#include "runtime/base/export.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/trace.h"
#include "runtime/client/inject/inject.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/job/ending.h"
#include "runtime/client/job/enter.h"
#include "runtime/client/job/bootstrap.h"
#include "runtime/client/job/needs.h"
#include "runtime/client/job/notify.h"
#include "runtime/client/job/process.h"
#include "runtime/client/job/welcome.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/threads.h"

__attribute__((aligned(64))) struct client process_client = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a fork's child ---- */

static atomic_bool forked; /* this process is a fork of a rank, and none itself */

/* The child has this thread only, and whatever the others were about to do in the library's memory. It is as after
 * keel_finalize, but for the agent, which hears nothing of it: every call says so before it touches anything. Locks
 * that were another thread's are nobody's. */
static void in_child(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    if (!process_client.ready)
        return;
    atomic_store(&forked, true);
    process_client.ready = false;
    process_client.left = process_client.leaving = true;
    process_client.lock = unlocked;
    counters_process(NULL);
    notify_forget();
    living_forget();
    trace_forget();
    channel_forget();
}

static void expect_forks(void)
{
    static bool expected;
    if (!expected && pthread_atfork(NULL, NULL, in_child) != 0)
        log_warn("no memory to tell a fork's child that it is not this rank");
    expected = true;
}

/* ---- its start ---- */

static void say_failed(keel_status status)
{
    char why[REFUSAL_MAX];
    fprintf(stderr, "keel_init: %s\n", refusal_text(status, why));
}

/* keel_init has come to nothing and says so: how the program ends then is its own matter. */
static void give_up(void)
{
    struct control r = {.type = CONTROL_GAVE_UP};
    (void)channel_tell(NULL, &r);
}

static keel_status begin(int keel_fd)
{
    int fd = -1;
    keel_status entered = enter_job(keel_fd, &fd);
    if (entered == KEEL_OK)
        channel_open(fd);
    if (entered != KEEL_OK && entered != KEEL_ERR_NOT_LAUNCHED)
        say_failed(entered);
    if (entered != KEEL_OK)
        return entered;
    /* A program that this one starts has no business there. */
    (void)fcntl(keel_fd, F_SETFD, FD_CLOEXEC);
    struct control_welcome w;
    int fds[CHANNEL_FDS];
    /* A standby waits here until it is needed: as long as the job runs. */
    ssize_t n = channel_receive(&w, sizeof w, fds, CHANNEL_FDS, -1);
    if (n == 0)
        return KEEL_ERR_AGENT_GONE;
    bool welcome = n == sizeof w && w.type == CONTROL_WELCOME;
    keel_status status = !welcome ? KEEL_ERR_NOT_LAUNCHED
                         : fds[CHANNEL_FDS - 1] < 0
                             ? refusal_note(EMFILE) /* the kernel drops those that it has no place for */
                             : welcome_accept(&w, fds);
    explicit_bzero(w.secret, sizeof w.secret);
    if (status != KEEL_OK && status != KEEL_ERR_LIMIT)
        say_failed(status);
    int failure_fd = status == KEEL_OK ? fds[CHANNEL_FDS - 1] : -1;
    for (int i = 0; i < CHANNEL_FDS; i++)
        if (fds[i] >= 0 && fds[i] != failure_fd)
            close(fds[i]);
    if (status == KEEL_OK)
        expect_forks();
    process_client.ready = status == KEEL_OK;
    if (process_client.ready)
        notify_init(failure_fd);
    if (process_client.ready)
        ending_begin();
    else
        give_up();
    struct control here = {.type = CONTROL_HERE};
    if (process_client.ready)
        (void)channel_tell(NULL, &here);
    if (process_client.ready)
        needs_begin();
    if (process_client.ready)
        inject_below_replicas();
    if (process_client.ready)
        status = replica_begin(&process_client);
    if (process_client.ready)
        inject_begin();
    if (process_client.ready)
        trace_begin(process_client.rank);
    return status;
}

/* The number of the descriptor in KEEL_FD, -1: none. */
static int launched_with(void)
{
    const char *text = getenv("KEEL_FD");
    char *end;
    long fd = text ? strtol(text, &end, 10) : -1;
    return !text || *end || fd < 0 ? -1 : (int)fd;
}

static bool leads_to_agent(int fd)
{
    int type;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

int needs_control_fd(void)
{
    int fd = launched_with();
    return fd >= 0 && leads_to_agent(fd) ? fd : -1;
}

static keel_status init_over(const struct keel_exchange *e)
{
    int fd;
    log_init("keel");
    if (e->rank == 0)
        log_check_level(); /* as keelrun does, where there is one */
    keel_status status = bootstrap_job(e, &fd);
    if (status != KEEL_OK)
        return status;
    status = begin(fd);
    return status == KEEL_OK && !bootstrap_hold() ? KEEL_ERR_AGENT_GONE : status;
}

KEEL_EXPORT keel_status keel_init(void)
{
    struct keel_exchange e;
    if (process_client.ready || process_client.left)
        return KEEL_ERR_STATE;
    enter_hold_standard();
    log_init("keel");
    int fd = launched_with();
    if (fd < 0 && !pmi_exchange_found()) {
        fprintf(stderr,
                "keel_init: the program was not started by keelrun (keelrun -n RANKS %s), nor by a launcher that "
                "speaks PMI-1\n",
                program_invocation_short_name);
        return KEEL_ERR_NOT_LAUNCHED;
    }
    if (sodium_init() < 0)
        return KEEL_ERR_SYSTEM;
    if (fd >= 0 && !leads_to_agent(fd)) {
        fprintf(stderr,
                "keel_init: KEEL_FD names descriptor %d, which does not lead to an agent (has it been closed, or was "
                "this program started by a rank?)\n",
                fd);
        return KEEL_ERR_NOT_LAUNCHED;
    }
    if (fd >= 0)
        return begin(fd);
    keel_status status = pmi_exchange_open(&e);
    return status == KEEL_OK ? init_over(&e) : status;
}

KEEL_EXPORT keel_status keel_init_over(const struct keel_exchange *e)
{
    if (process_client.ready || process_client.left)
        return KEEL_ERR_STATE;
    if (!e || !e->gather || e->size < 1 || e->rank < 0 || e->rank >= e->size)
        return KEEL_ERR_ARG;
    enter_hold_standard();
    return sodium_init() < 0 ? KEEL_ERR_SYSTEM : init_over(e);
}

keel_status call_finalize(void)
{
    if (atomic_load(&forked))
        return KEEL_ERR_STATE;
    notify_fini();
    keel_status status = client_leave(&process_client);
    client_lock(&process_client);
    struct tp *net = process_client.left ? process_client.connections.net : NULL, *shm = process_client.connections.shm,
              *direct = process_client.direct.tp;
    if (net) /* this thread's to close: nobody looks there any more */
        process_client.connections.net = process_client.connections.shm = NULL;
    pthread_mutex_unlock(&process_client.lock);
    if (!net)
        return status;
    bootstrap_release();
    if (direct != net)
        direct->table->close(direct);
    net->table->close(net);
    shm->table->close(shm);
    return status;
}

KEEL_EXPORT _Noreturn void keel_abort(int code, const char *message)
{
    int exit_code = code & 0xff ? code & 0xff : 1; /* what an exit code can be, and a failure */
    fprintf(stderr, "%s\n", message ? message : "keel_abort");
    fflush(NULL);
    FAULT_POINT("rank.aborting");
    if (channel_is_open()) {
        struct control r = {.type = CONTROL_ABORT, .a = exit_code};
        (void)channel_tell(NULL, &r);
    }
    ending_say(0); /* the agent has heard more than that */
    FAULT_POINT("rank.aborted");
    _exit(exit_code);
}
