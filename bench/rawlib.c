#include "bench/rawside.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Shared with the children. */
struct control {
    _Atomic int ready[RAW_TARGETS_MAX]; /* 1: address is there; -1: failed */
    _Atomic int yielding;               /* more spinners than cores: give the core away when idle */
    uint8_t addr[RAW_TARGETS_MAX][64];
    size_t addr_len[RAW_TARGETS_MAX];
};

struct raw {
    struct side side;
    struct control *control;
    int targets, running; /* those not stopped are the first `running` */
    pid_t pid[RAW_TARGETS_MAX];
    size_t memory;
};

double raw_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double raw_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int raw_iters(double us)
{
    double n = 10000 / us;
    return n < 4 ? 4 : n > 5000 ? 5000 : (int)n;
}

/* ---- targets ---- */

static void target_serve(struct side *side, struct control *control)
{
    struct fi_cq_msg_entry entries[16];
    for (;;) {
        ssize_t n = fi_cq_read(side->cq, entries, 16);
        if (n == -FI_EAVAIL)
            return; /* the other side has gone */
        if (n <= 0) {
            if (atomic_load_explicit(&control->yielding, memory_order_relaxed))
                sched_yield();
            continue;
        }
        for (ssize_t i = 0; i < n; i++) {
            uint8_t *buffer = entries[i].op_context;
            size_t len = entries[i].len;
            memcpy(side->messages + RECVS * MESSAGE_MAX, buffer, len);
            if (fi_inject(side->ep[0], side->messages + RECVS * MESSAGE_MAX, len, FI_ADDR_UNSPEC) != 0 ||
                fi_recv(side->ep[0], buffer, MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, buffer) != 0)
                return;
        }
    }
}

void raw_unpaced(void)
{
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char now[16] = "";
        socklen_t len = sizeof now;
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &len) == 0 && strncmp(now, "bbr", 3) == 0 &&
            setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5))
            (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    if (dir)
        closedir(dir);
    errno = 0; /* the provider takes it for its own */
}

static void target_run(const char *host, const char *provider, size_t memory, struct control *control, int me)
{
    struct side side = {0};
    struct fi_info *info = NULL;
    size_t len = sizeof(control->addr[me]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool up = raw_side_open(&side, host, provider, memory) &&
              !raw_failed("fi_passive_ep", fi_passive_ep(side.fabric, side.info, &side.pep, NULL)) &&
              !raw_failed("bind", fi_pep_bind(side.pep, &side.eq->fid, 0)) &&
              !raw_failed("fi_listen", fi_listen(side.pep)) &&
              !raw_failed("fi_getname", fi_getname(&side.pep->fid, control->addr[me], &len));
    control->addr_len[me] = len;
    atomic_store(&control->ready[me], up ? 1 : -1);
    if (up && raw_await_cm(&side, &info) == FI_CONNREQ && raw_ep_open(&side, info, &side.ep[0]) &&
        !raw_failed("fi_accept", fi_accept(side.ep[0], NULL, 0)) && raw_await_cm(&side, NULL) == FI_CONNECTED) {
        raw_unpaced();
        target_serve(&side, control);
    }
    _exit(0);
}

static bool target_connect(struct raw *raw, int i)
{
    double deadline = raw_now_us() + 10e6;
    while (atomic_load(&raw->control->ready[i]) == 0 && raw_now_us() < deadline)
        usleep(1000);
    bool up = atomic_load(&raw->control->ready[i]) == 1 && raw_ep_open(&raw->side, raw->side.info, &raw->side.ep[i]) &&
              !raw_failed("fi_connect", fi_connect(raw->side.ep[i], raw->control->addr[i], NULL, 0)) &&
              raw_await_cm(&raw->side, NULL) == FI_CONNECTED;
    raw_unpaced();
    return up;
}

static void pause_targets(struct raw *raw)
{
    for (int i = 0; i < raw->running; i++)
        kill(raw->pid[i], SIGSTOP);
    for (int i = 0; i < raw->running; i++)
        waitpid(raw->pid[i], NULL, WUNTRACED);
    raw->running = 0;
}

/* The first `targets` of them: one that only spins would take a core from those that are measured. */
static void resume(struct raw *raw, int targets)
{
    for (int i = 0; i < targets; i++)
        kill(raw->pid[i], SIGCONT);
    raw->running = targets;
}

struct raw *raw_start(const char *host, const char *provider, int targets, size_t memory)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    void *control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!raw || control == MAP_FAILED || targets < 1 || targets > RAW_TARGETS_MAX) {
        free(raw);
        return NULL;
    }
    raw->control = control;
    raw->memory = memory;
    fflush(NULL);
    for (; raw->targets < targets; raw->targets++) {
        pid_t pid = fork();
        if (pid == 0)
            target_run(host, provider, memory, control, raw->targets);
        if (pid < 0)
            break;
        raw->pid[raw->targets] = pid;
        raw->running++;
    }
    bool up = raw->targets == targets && raw_side_open(&raw->side, host, provider, memory);
    for (int i = 0; up && i < targets; i++)
        up = target_connect(raw, i);
    if (!up) {
        fprintf(stderr, "raw libfabric: cannot start on %s over %s\n", host, provider);
        raw_stop(raw);
        return NULL;
    }
    pause_targets(raw);
    return raw;
}

void raw_stop(struct raw *raw)
{
    if (!raw)
        return;
    for (int i = 0; i < raw->targets; i++) {
        kill(raw->pid[i], SIGKILL);
        while (waitpid(raw->pid[i], NULL, 0) < 0 && errno == EINTR)
            ;
    }
    raw_side_close(&raw->side);
    munmap(raw->control, sizeof(*raw->control));
    free(raw);
}

/* ---- measuring ---- */

static void await_completions(struct raw *raw, int count)
{
    struct fi_cq_msg_entry entries[16];
    while (count > 0) {
        ssize_t n = fi_cq_read(raw->side.cq, entries, count < 16 ? (size_t)count : 16);
        if (n > 0)
            count -= (int)n;
        if (n < 0 && n != -FI_EAGAIN) {
            fprintf(stderr, "raw libfabric: a target died\n");
            exit(1);
        }
        if (n <= 0 && atomic_load_explicit(&raw->control->yielding, memory_order_relaxed))
            sched_yield();
    }
}

static void post_write(struct raw *raw, int target, size_t size)
{
    struct iovec iov = {.iov_base = raw->side.memory, .iov_len = size};
    struct fi_rma_iov remote = {.addr = 0, .len = size, .key = KEY};
    struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1};
    while (fi_writemsg(raw->side.ep[target], &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE) == -FI_EAGAIN)
        await_completions(raw, 0);
}

static void post_read(struct raw *raw, int target, size_t size)
{
    struct iovec iov = {.iov_base = raw->side.memory, .iov_len = size};
    struct fi_rma_iov remote = {.addr = 0, .len = size, .key = KEY};
    struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1};
    while (fi_readmsg(raw->side.ep[target], &msg, FI_COMPLETION) == -FI_EAGAIN)
        await_completions(raw, 0);
}

static void do_write(struct raw *raw, size_t size)
{
    post_write(raw, 0, size);
    await_completions(raw, 1);
}

static void do_read(struct raw *raw, size_t size)
{
    post_read(raw, 0, size);
    await_completions(raw, 1);
}

static void do_pair(struct raw *raw, size_t size)
{
    post_write(raw, 0, size);
    post_write(raw, 1, size);
    await_completions(raw, 2);
}

static void do_message(struct raw *raw, size_t size)
{
    struct fi_cq_msg_entry entry;
    if (fi_inject(raw->side.ep[0], raw->side.memory, size, FI_ADDR_UNSPEC) != 0)
        return;
    while (fi_cq_read(raw->side.cq, &entry, 1) == -FI_EAGAIN)
        ;
    fi_recv(raw->side.ep[0], entry.op_context, MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, entry.op_context);
}

static double batch(struct raw *raw, void (*one)(struct raw *, size_t), size_t size, int iters)
{
    resume(raw, one == do_pair ? 2 : 1);
    for (int i = 0; i < iters / 10 + 2; i++)
        one(raw, size);
    double start = raw_now_us();
    for (int i = 0; i < iters; i++)
        one(raw, size);
    double us = (raw_now_us() - start) / iters;
    pause_targets(raw);
    return us;
}

static double batches(struct raw *raw, void (*one)(struct raw *, size_t), size_t size, int iters)
{
    double us[RAW_BATCHES];
    for (int i = 0; i < RAW_BATCHES; i++)
        us[i] = batch(raw, one, size, iters);
    return raw_median(us, RAW_BATCHES);
}

double raw_write_batch_us(struct raw *raw, size_t size, int iters)
{
    return batch(raw, do_write, size, iters);
}

double raw_read_batch_us(struct raw *raw, size_t size, int iters)
{
    return batch(raw, do_read, size, iters);
}

double raw_write_us(struct raw *raw, size_t size, int iters)
{
    return batches(raw, do_write, size, iters);
}

double raw_read_us(struct raw *raw, size_t size, int iters)
{
    return batches(raw, do_read, size, iters);
}

double raw_message_us(struct raw *raw, size_t size, int iters)
{
    return batches(raw, do_message, size, iters);
}

double raw_pair_us(struct raw *raw, size_t size, int iters)
{
    atomic_store(&raw->control->yielding, 1); /* three spinners */
    double us = batches(raw, do_pair, size, iters);
    atomic_store(&raw->control->yielding, 0);
    return us;
}

double raw_write_batch_kops(struct raw *raw, size_t size, int outstanding, int iters)
{
    resume(raw, 1);
    do_write(raw, size);
    double start = raw_now_us();
    int posted = 0, done = 0;
    while (done < iters) {
        struct fi_cq_msg_entry entries[16];
        for (; posted < iters && posted - done < outstanding; posted++)
            post_write(raw, 0, size);
        ssize_t n = fi_cq_read(raw->side.cq, entries, 16);
        if (n > 0)
            done += (int)n;
    }
    double kops = iters * 1e3 / (raw_now_us() - start);
    pause_targets(raw);
    return kops;
}

double raw_write_kops(struct raw *raw, size_t size, int outstanding, int iters)
{
    double kops[RAW_BATCHES];
    for (int i = 0; i < RAW_BATCHES; i++)
        kops[i] = raw_write_batch_kops(raw, size, outstanding, iters);
    return raw_median(kops, RAW_BATCHES);
}
