/* The data thread of an agent. One loop: transports, commands of the other threads, ranks' control sockets, timers. It
 * spins for a bounded time after the last request, unless others want the processor, and otherwise sleeps in epoll, so
 * that an idle node burns no processor. The files of this folder are where the runtime's agent side does I/O and reads
 * the clock. */
#include <sched.h>
#include <sys/epoll.h>

#include "runtime/agent/turns.h"
#include "runtime/base/clock.h"
#include "runtime/base/slice.h"
#include "runtime/base/contended.h"
#include "runtime/plane/plane_int.h"

enum {
    SHORT_SLEEP_NS = 200000, /* a sleep that was not worth it */
    SPIN_MAX_NS = 400000,
    YIELD_EVERY = 8,           /* polls without work */
    SOCKETS_EVERY_NS = 100000, /* while spinning, look at the sockets this often */
    SLICE_NS = 100000, /* an answer is some microseconds of work; what waits must not wait for those who compute */
};

static void handle_sockets(struct plane *p, int timeout_ms)
{
    struct epoll_event ev[16];
    int n = epoll_wait(p->epoll_fd, ev, 16, timeout_ms);
    for (int i = 0; i < n; i++)
        if (ev[i].data.ptr) /* others only wake the loop */
            procs_readable(p, ev[i].data.ptr);
}

static int sleep_ms(const struct plane *p)
{
    uint64_t deadline = agent_deadline(&p->agent);
    if (p->stop_deadline && !p->over_told && p->stop_deadline < deadline)
        deadline = p->stop_deadline;
    if (p->processes && p->waits_at < deadline)
        deadline = p->waits_at;
    if (deadline == UINT64_MAX)
        return -1;
    return deadline <= p->agent.now ? 0 : (int)((deadline - p->agent.now) / KEEL_NS_PER_MS + 1);
}

static bool round_of_work(struct plane *p)
{
    struct agent *a = &p->agent;
    a->now = clock_now_ns();
    struct command *commands = commands_take(p);
    bool busy = commands != NULL;
    busy |= procs_have_asked(p);
    busy |= agent_poll(a, p->shm) > 0;
    busy |= agent_poll(a, p->net) > 0;
    commands_run(p, commands);
    busy |= agent_step(a);
    waits_look(p);
    if (p->stop_deadline && a->now >= p->stop_deadline)
        commands_tell_over(p);
    return busy;
}

/* Sleep until something comes. Remote reads and writes are served inside the provider and leave no event, so it is the
 * length of the sleep that tells how busy the node is: after a short one it pays to spin longer. Returns the time to
 * spin. */
static uint64_t sleep_and_learn(struct plane *p, uint64_t spin_ns)
{
    uint64_t from = clock_now_ns();
    handle_sockets(p, sleep_ms(p));
    if (clock_now_ns() - from > SHORT_SLEEP_NS)
        return p->spin_ns;
    uint64_t longer = spin_ns * 4;
    return p->spin_ns == 0 ? 0 : longer > SPIN_MAX_NS ? SPIN_MAX_NS : longer;
}

/* Blocks of a filling came or went in this round. */
static void give_way(struct turns *turns)
{
    uint64_t used = clock_thread_ns();
    if (!turns_due(turns, used))
        return;
    uint64_t from = clock_now_ns();
    sched_yield();
    turns_back(turns, used, clock_now_ns() - from);
}

void *plane_thread(void *arg)
{
    struct plane *p = arg;
    struct agent *a = &p->agent;
    pthread_setname_np(pthread_self(), "keel-data");
    slice_set(SLICE_NS);
    uint64_t busy_at = clock_now_ns(), sockets_at = 0, spin_ns = p->spin_ns;
    struct turns turns = {0};
    struct contended contended = {0};
    unsigned idle = 0;
    for (;;) {
        uint64_t blocks = a->repairs.blocks;
        bool busy = round_of_work(p);
        if (p->quit)
            return NULL; /* before it sleeps: nobody would wake it any more */
        if (a->repairs.blocks != blocks)
            give_way(&turns);
        if (busy) {
            busy_at = a->now;
            contended_pause(&contended);
        }
        if (a->now - busy_at < spin_ns && (busy || !contended_in_vain(&contended, a->now))) {
            if (busy)
                idle = 0;
            else if (idle++ % YIELD_EVERY == 0)
                sched_yield(); /* whoever waits for what was done here, or computes, may need this processor */
            if (a->now - sockets_at > SOCKETS_EVERY_NS) {
                sockets_at = a->now;
                handle_sockets(p, 0);
            }
            continue;
        }
        if (p->shm->table->arm(p->shm) && p->net->table->arm(p->net) &&
            !atomic_load_explicit(&p->command_waiting, memory_order_acquire)) {
            spin_ns = sleep_and_learn(p, spin_ns);
            busy_at = clock_now_ns();
            contended_pause(&contended);
        } else {
            handle_sockets(p, 0);
        }
    }
}
