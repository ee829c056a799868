/* Start and end of a rank, its control socket, and what it can ask about the job. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/address_range.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/export.h"
#include "runtime/client/api/calls.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/words.h"
#include "runtime/client/job/ending.h"
#include "runtime/client/job/enter.h"
#include "runtime/client/job/join.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/api/trace.h"
#include "runtime/client/job/needs.h"
#include "runtime/client/job/notify.h"
#include "runtime/client/job/process.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/track.h"
#include "runtime/client/threads.h"
#include "runtime/net/sealed/sealed.h"
#include "runtime/net/shm/shm.h"
#include "runtime/net/stream/stream.h"

enum {
    WELCOME_FDS = 4 + TP_SHM_FDS,
    TIMEOUT_MS_DEFAULT = 30000,
    SPIN_US_DEFAULT = 30,
    SPIN_LONG_US = 1000,
    VERDICT_MS = 5000, /* until a verdict that could fall is known, and acted upon */
    SAID_MS = 1000     /* WAIT_SAID_NS */
};

struct client process_client = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What the instance does not know of: the control socket, epoll, mappings. */
static struct {
    pthread_mutex_t control_lock;
    int control_fd;
    uint32_t control_id; /* under control_lock */
    int epoll_fd;
} process = {.control_lock = PTHREAD_MUTEX_INITIALIZER, .control_fd = -1, .epoll_fd = -1};

/* ---- control socket ---- */

/* One packet with up to max descriptors; its length, 0 if the agent is gone, -1 if none came in time. */
static ssize_t receive(void *buf, size_t len, int *fds, int max, int timeout_ms)
{
    struct pollfd pfd = {.fd = process.control_fd, .events = POLLIN};
    int ready;
    for (int i = 0; i < max; i++)
        fds[i] = -1;
    while ((ready = poll(&pfd, 1, timeout_ms)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return -1;
    union {
        char bytes[CMSG_SPACE(WELCOME_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {buf, len};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(process.control_fd, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
        int count = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + (size_t)i * sizeof fd, sizeof fd);
            if (i < max)
                fds[i] = fd;
            else
                close(fd);
        }
    }
    return n < 0 ? 0 : n;
}

/* An agent that is awake sees at once that there is something. */
static bool put(const struct control *r, int flags)
{
    if (send(process.control_fd, r, sizeof *r, MSG_NOSIGNAL | flags) != (ssize_t)sizeof *r)
        return false;
    if (process_client.intents)
        atomic_fetch_add(&process_client.intents->asked, 1);
    return true;
}

static bool tell(void *user, const struct control *r)
{
    (void)user;
    return put(r, MSG_DONTWAIT);
}

/* A node that does not answer is waited for until it can have been declared dead. */
static unsigned long patience_ms(const struct page *page)
{
    unsigned long ms = page ? (unsigned long)page->patience_ms + VERDICT_MS : 0;
    return ms > TIMEOUT_MS_DEFAULT ? ms : TIMEOUT_MS_DEFAULT;
}

/* The answer to request r, before the deadline; other answers came too late for theirs. */
static keel_status await_answer(struct control *r, int *passed)
{
    uint64_t begun = clock_now_ns(), now = begun;
    uint64_t deadline = begun + (uint64_t)patience_ms(process_client.page) * KEEL_NS_PER_MS;
    struct wait wait = {.call = r->type == CONTROL_LEAVING ? WAIT_FINALIZE : WAIT_ALLOC}; /* for all agents */
    struct control reply;
    keel_status status = KEEL_ERR_TIMEOUT;
    while (now < deadline) {
        int left_ms = (int)((deadline - now) / KEEL_NS_PER_MS) + 1;
        ssize_t n = receive(&reply, sizeof reply, passed, 1, now < begun + WAIT_SAID_NS ? SAID_MS : left_ms);
        if (n == 0) {
            status = KEEL_ERR_AGENT_GONE;
            break;
        }
        if (n == sizeof reply && reply.id == r->id) {
            *r = reply;
            status = (keel_status)reply.status; /* also KEEL_IN_PROGRESS */
            break;
        }
        if (*passed >= 0)
            close(*passed);
        *passed = -1;
        now = clock_now_ns();
        waits_last(&process_client, &wait, begun, now);
    }
    waits_over(&process_client, &wait);
    return status;
}

static keel_status request(void *user, struct control *r, void **memory)
{
    (void)user;
    int passed = -1;
    pthread_mutex_lock(&process.control_lock);
    r->id = ++process.control_id;
    keel_status status = KEEL_ERR_AGENT_GONE;
    if (put(r, 0))
        status = await_answer(r, &passed);
    pthread_mutex_unlock(&process.control_lock);
    if (memory && status == KEEL_OK) {
        *memory = mmap(*memory, layout_memory_bytes(r->bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | (*memory ? MAP_FIXED : 0), passed, 0);
        if (*memory == MAP_FAILED)
            status = KEEL_ERR_NOMEM;
    }
    if (passed >= 0)
        close(passed);
    return status;
}

static struct client_env environment;

/* Addresses for segments: kept free of everything else by a mapping that nothing is behind. Far from where programs, their
 * libraries, heaps and address sanitizers are; or, where a thread sanitizer has that, low. */
static const struct {
    uint64_t base, bytes;
} ranges[] = {{0x200000000000, 0x200000000000}, {0x1000000000, 0x6000000000}};

static bool range_keep(uint64_t base, size_t bytes, int how)
{
    void *at = (void *)(uintptr_t)base; // NOLINT(performance-no-int-to-ptr)
    void *m = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
    if (m != MAP_FAILED && m != at)
        munmap(m, bytes);
    return m == at;
}

static void unmap(void *user, void *memory, size_t bytes)
{
    (void)user;
    if ((uintptr_t)memory - environment.range >= environment.range_bytes ||
        !range_keep((uintptr_t)memory, bytes, MAP_FIXED))
        munmap(memory, bytes);
}

/* The one that the job was given, or a usual one. */
static bool find_range(const struct control_welcome *w)
{
    environment.range = w->range_base;
    environment.range_bytes = w->range_bytes;
    if (w->range_bytes) {
        bool kept = range_keep(w->range_base, (size_t)w->range_bytes, MAP_FIXED_NOREPLACE);
        if (!kept)
            fprintf(stderr,
                    "keel_init: rank %d cannot keep the addresses 0x%llx to 0x%llx free for the job's segments (%s)\n",
                    w->rank, (unsigned long long)w->range_base, (unsigned long long)(w->range_base + w->range_bytes),
                    ADDRESS_RANGE_ENV);
        return kept;
    }
    if (env_is_valgrind()) { /* reserving so much takes it minutes, and more memory than there is */
        fprintf(stderr,
                "keel_init: rank %d is run by valgrind, which cannot hold the %d TiB of addresses that this job keeps "
                "for segments: start the "
                "job with %s=small in keelrun's environment\n",
                w->rank, (int)(ranges[0].bytes >> 40), ADDRESS_RANGE_ENV);
        return false;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && !environment.range_bytes; i++)
        if (range_keep(ranges[i].base, (size_t)ranges[i].bytes, MAP_FIXED_NOREPLACE)) {
            environment.range = ranges[i].base;
            environment.range_bytes = ranges[i].bytes;
        }
    return true;
}

static bool agent_is_gone(void *user)
{
    (void)user;
    struct pollfd pfd = {.fd = process.control_fd, .events = 0};
    return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLHUP | POLLERR));
}

static uint64_t now(void *user)
{
    (void)user;
    return clock_now_ns();
}

static void sleep_for(void *user, int ms)
{
    (void)user;
    struct epoll_event ev[3];
    epoll_wait(process.epoll_fd, ev, 3, ms);
}

static void yield(void *user)
{
    (void)user;
    sched_yield();
}

static uint32_t processor(void *user)
{
    (void)user;
    return (uint32_t)(sched_getcpu() + 1);
}

/* Left to itself the kernel parts two that share a processor only after many milliseconds. */
static void move(void *user)
{
    (void)user;
    cpu_set_t mine, others;
    int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    others = mine;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof mine, &mine);
}

static void copy(void *user, void *dst, const void *src, size_t len)
{
    (void)user;
    words_store(dst, src, len);
}

static struct client_env environment = {.now = now,
                                        .sleep = sleep_for,
                                        .yield = yield,
                                        .request = request,
                                        .unmap = unmap,
                                        .tell = tell,
                                        .agent_is_gone = agent_is_gone,
                                        .copy = copy,
                                        .processor = processor,
                                        .move = move,
                                        .leaving = track_forget};

/* ---- keel_init ---- */

static keel_status map_page(int fd, const struct page **page)
{
    const struct page *head = mmap(NULL, sizeof *head, PROT_READ, MAP_SHARED, fd, 0);
    struct stat st;
    if (head == MAP_FAILED)
        return KEEL_ERR_NOMEM;
    bool good = fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof *head && head->magic == PAGE_MAGIC;
    size_t bytes = good ? page_bytes(head->nodes, head->members, head->ranks) : 0;
    munmap((void *)head, sizeof *head);
    void *m = good ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (m == MAP_FAILED)
        return good ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    *page = m;
    return KEEL_OK;
}

static keel_status watch(struct tp *tp)
{
    struct epoll_event ev = {.events = EPOLLIN};
    return epoll_ctl(process.epoll_fd, EPOLL_CTL_ADD, tp->table->wait_fd(tp), &ev) == 0 ? KEEL_OK : refusal_note(errno);
}

/* between: between ranks. Sockets of our own have less between a message and the wire than libfabric's; an RDMA device has less than both. */
static keel_status open_transports(const struct control_welcome *w, struct tp **net, struct tp **shm,
                                   struct tp **between)
{
    struct tp_config config = {.host = w->host, .provider = w->provider};
    keel_status status = tp_net_open(&config, w->secure ? w->secret : NULL, net);
    *between = *net;
    if (status == KEEL_OK && !w->secure && strcmp(w->provider, "tcp") == 0)
        status = tp_stream.open(&config, between);
    if (status == KEEL_OK)
        status = tp_shm_open(shm);
    process.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (status == KEEL_OK && process.epoll_fd < 0)
        status = refusal_note(errno);
    if (status == KEEL_OK)
        status = watch(*net);
    if (status == KEEL_OK)
        status = watch(*shm);
    if (status == KEEL_OK && *between != *net)
        status = watch(*between);
    return status;
}

static void close_transports(struct tp *net, struct tp *shm, struct tp *between)
{
    if (between && between != net)
        between->table->close(between);
    if (net)
        net->table->close(net);
    if (shm)
        shm->table->close(shm);
    if (process.epoll_fd >= 0)
        close(process.epoll_fd);
    process.epoll_fd = -1;
}

/* The memory that it shares with the other ranks of the node. Where the agent has none for it they talk through their
 * agent; but what the others put there for a rank that has not mapped it, nobody would ever read. */
static keel_status enter_hall(struct client *c, int fd)
{
    size_t bytes = hall_bytes(c->page, page_rank(c->page, c->rank)->slot);
    struct stat st;
    if (!bytes || c->incarnation > 0 || fstat(fd, &st) != 0 || (size_t)st.st_size != bytes)
        return KEEL_OK;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        log_error("no address space for the %zu bytes that the ranks of a node share: %s", bytes, strerror(errno));
        return KEEL_ERR_NOMEM;
    }
    hall_attach(c, memory);
    return KEEL_OK;
}

/* Is there a processor for each rank of this host? All nodes of a test bed on loopback are one. Who is bound to one processor is
 * not bound alone. */
static bool has_room(const struct client *c, const struct control_welcome *w)
{
    cpu_set_t mine;
    bool bed = strncmp(w->host, "127.", 4) == 0;
    int ranks = 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return false;
    for (int r = 0; r < c->size; r++)
        ranks += bed || page_rank(c->page, r)->slot == page_rank(c->page, c->rank)->slot;
    return ranks <= (CPU_COUNT(&mine) == 1 ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&mine));
}

static keel_status accept_welcome(const struct control_welcome *w, const int *fds)
{
    char who[32];
    snprintf(who, sizeof who, "rank %d", w->rank);
    log_init(who);
    if (!join_is()) /* else it has been */
        fault_init(w->node, w->rank, w->incarnation);
    handle_is_watched = env_is_valgrind();
    const struct page *page = NULL;
    struct tp *net = NULL, *shm = NULL, *between = NULL;
    keel_status status = map_page(fds[0], &page);
    void *intents = status == KEEL_OK
                        ? mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0)
                        : MAP_FAILED;
    if (status == KEEL_OK && intents == MAP_FAILED)
        status = KEEL_ERR_NOMEM;
    if (status == KEEL_OK)
        status = open_transports(w, &net, &shm, &between);
    if (status == KEEL_OK && !find_range(w))
        status = KEEL_ERR_LIMIT; /* and told */
    if (status == KEEL_OK)
        status = client_init(&process_client, &environment, w, page, intents, net, shm);
    if (status != KEEL_OK) {
        close_transports(net, shm, between);
        return status;
    }
    process_client.links.bytewise = w->secure || strcmp(w->provider, "verbs") != 0;
    direct_over(&process_client, between);
    process_client.timeout_ns = env_number("KEEL_TIMEOUT_MS", patience_ms(page)) * KEEL_NS_PER_MS;
    process_client.looks.short_ns = env_number("KEEL_SPIN_US", SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    if (!getenv("KEEL_SPIN_US") && has_room(&process_client, w))
        process_client.looks.long_ns = SPIN_LONG_US * KEEL_NS_PER_US;
    struct tp_ep *own;
    status = tp_shm_attach(shm, fds + 2, client_own_link(&process_client), &own);
    if (status == KEEL_OK)
        client_attach(&process_client, own);
    if (status == KEEL_OK)
        status = enter_hall(&process_client, fds[2 + TP_SHM_FDS]);
    if (status == KEEL_OK && !public_groups_begin())
        status = KEEL_ERR_NOMEM;
    return status;
}

/* ---- a fork's child ---- */

static atomic_bool forked; /* this process is a fork of a rank, and none itself */

/* The child has this thread only, and whatever the others were about to do in the library's memory. It is as after keel_finalize, but for the agent,
 * which hears nothing of it: every call says so before it touches anything. Locks that were another thread's are nobody's. */
static void in_child(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    if (!process_client.ready)
        return;
    atomic_store(&forked, true);
    process_client.ready = false;
    process_client.left = process_client.leaving = true;
    process_client.lock = process.control_lock = unlocked;
    notify_forget();
    living_forget();
    trace_forget();
    close(process.control_fd);
    process.control_fd = -1;
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
    (void)put(&r, MSG_DONTWAIT);
}

static keel_status begin(int keel_fd)
{
    keel_status entered = enter_job(keel_fd, &process.control_fd);
    if (entered != KEEL_OK && entered != KEEL_ERR_NOT_LAUNCHED)
        say_failed(entered);
    if (entered != KEEL_OK)
        return entered;
    /* A program that this one starts has no business there. */
    (void)fcntl(keel_fd, F_SETFD, FD_CLOEXEC);
    struct control_welcome w;
    int fds[WELCOME_FDS];
    /* A standby waits here until it is needed: as long as the job runs. */
    ssize_t n = receive(&w, sizeof w, fds, WELCOME_FDS, -1);
    if (n == 0)
        return KEEL_ERR_AGENT_GONE;
    bool welcome = n == sizeof w && w.type == CONTROL_WELCOME;
    keel_status status = !welcome ? KEEL_ERR_NOT_LAUNCHED
                         : fds[WELCOME_FDS - 1] < 0
                             ? refusal_note(EMFILE) /* the kernel drops those that it has no place for */
                             : accept_welcome(&w, fds);
    explicit_bzero(w.secret, sizeof w.secret);
    if (status != KEEL_OK && status != KEEL_ERR_LIMIT)
        say_failed(status);
    int failure_fd = status == KEEL_OK ? fds[WELCOME_FDS - 1] : -1;
    for (int i = 0; i < WELCOME_FDS; i++)
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
        (void)tell(NULL, &here);
    if (process_client.ready)
        needs_begin();
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
    keel_status status = join_job(e, &fd);
    if (status != KEEL_OK)
        return status;
    status = begin(fd);
    return status == KEEL_OK && !join_hold() ? KEEL_ERR_AGENT_GONE : status;
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
    struct tp *net = process_client.left ? process_client.links.net : NULL, *shm = process_client.links.shm,
              *direct = process_client.direct.tp;
    if (net) /* this thread's to close: nobody looks there any more */
        process_client.links.net = process_client.links.shm = NULL;
    pthread_mutex_unlock(&process_client.lock);
    if (!net)
        return status;
    join_release();
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
    if (process.control_fd >= 0) {
        struct control r = {.type = CONTROL_ABORT, .a = exit_code};
        (void)tell(NULL, &r);
    }
    ending_say(0); /* the agent has heard more than that */
    FAULT_POINT("rank.aborted");
    _exit(exit_code);
}

/* ---- questions ---- */

KEEL_EXPORT int keel_rank(void)
{
    return process_client.rank;
}

KEEL_EXPORT int keel_size(void)
{
    return process_client.size;
}

int call_rank_node(int rank)
{
    if (!process_client.page || rank < 0 || rank >= process_client.size)
        return -1;
    return (int)(int32_t)(atomic_load_explicit(&page_rank(process_client.page, rank)->where, memory_order_acquire) >>
                          32);
}

bool call_rank_alive(int rank)
{
    return call_rank_node(rank) >= 0;
}

uint64_t call_view_epoch(void)
{
    return process_client.page ? atomic_load_explicit(&process_client.page->epoch, memory_order_acquire) : 0;
}

KEEL_EXPORT bool keel_restarted(void)
{
    return process_client.restarted;
}

keel_status call_resume(uint64_t *collectives)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    FAULT_POINT("rank.resuming");
    process_client.resumed = true;
    if (collectives)
        *collectives = process_client.collectives;
    return KEEL_OK;
}

uint64_t call_collective_count(void)
{
    return process_client.collectives;
}

keel_status call_event(const char *name, int64_t number, const char *text)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    if (!name || !*name || strlen(name) > 64)
        return KEEL_ERR_ARG;
    struct control r = {.type = CONTROL_EVENT, .a = number};
    int n = snprintf(r.text, sizeof r.text, "%s", name);
    if (text)
        snprintf(r.text + n + 1, sizeof r.text - (size_t)n - 1, "%s", text);
    (void)tell(NULL, &r);
    return KEEL_OK;
}
