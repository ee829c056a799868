/* The transport table beside raw libfabric, batch by batch in turn, so that both see the same machine. */
#include "bench/rawlib.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/sealed/sealed.h"
#include "runtime/net/shm/shm.h"
#include "runtime/net/transport.h"

enum { MEMORY = 8 << 20, KEY = 3, BATCHES = RAW_BATCHES };

struct bench {
    struct tp *tp;
    struct tp_ep *ep;
    uint8_t *memory;
    pid_t pid;
};

static void die(const char *what)
{
    fprintf(stderr, "bench transport: %s\n", what);
    exit(1);
}

/* ---- the other side: answers messages with themselves ---- */

static void echo(struct tp *tp)
{
    struct tp_event events[16];
    struct tp_ep *ep;
    for (;;) {
        int n = tp_poll(tp, events, 16);
        for (int i = 0; i < n; i++) {
            if (events[i].type == TP_CONNREQ && tp->table->accept(tp, events[i].req, NULL, &ep) != KEEL_OK)
                _exit(1);
            if (events[i].type == TP_RECV && tp_send(events[i].ep, events[i].data, events[i].len, NULL, 0, NULL))
                _exit(1);
            if (events[i].type == TP_CLOSED)
                _exit(0);
        }
    }
}

/* secret NULL: plain, over libfabric */
static struct tp *open_net(const uint8_t *secret)
{
    struct tp *tp;
    if (tp_net_open(&(struct tp_config){.host = "127.0.0.1", .provider = "tcp"}, secret, &tp) != KEEL_OK)
        die("cannot open the transport");
    return tp;
}

static void net_target(const uint8_t *secret, struct tp_addr *shared, _Atomic int *ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct tp *tp = open_net(secret);
    uint8_t *memory = calloc(1, MEMORY);
    if (!memory || tp->table->listen(tp, shared) != KEEL_OK || tp->table->reg(tp, memory, MEMORY, KEY) != KEEL_OK)
        die("cannot listen");
    atomic_store(ready, 1);
    echo(tp);
}

static void await_event(struct bench *b, enum tp_event_type type)
{
    struct tp_event event;
    for (;;) {
        if (tp_poll(b->tp, &event, 1) != 1)
            continue;
        if (event.type == type && event.status == KEEL_OK)
            return;
        die("unexpected event");
    }
}

static struct bench start_net(const uint8_t *secret)
{
    struct {
        struct tp_addr addr;
        _Atomic int ready;
    } *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct bench b = {.memory = calloc(1, MEMORY)};
    if (shared == MAP_FAILED || !b.memory)
        die("out of memory");
    fflush(NULL);
    b.pid = fork();
    if (b.pid == 0)
        net_target(secret, &shared->addr, &shared->ready);
    while (!atomic_load(&shared->ready))
        usleep(1000);
    b.tp = open_net(secret);
    if (b.tp->table->connect(b.tp, &shared->addr, NULL, 0, NULL, &b.ep) != KEEL_OK)
        die("cannot connect");
    await_event(&b, TP_CONNECTED);
    kill(b.pid, SIGSTOP);
    waitpid(b.pid, NULL, WUNTRACED);
    munmap(shared, sizeof(*shared));
    return b;
}

static struct bench start_shm(void)
{
    struct bench b = {0};
    int fds[TP_SHM_FDS];
    if (tp_shm_open(&b.tp) != KEEL_OK || tp_shm_create(b.tp, NULL, fds, &b.ep) != KEEL_OK)
        die("cannot create rings");
    fflush(NULL);
    b.pid = fork();
    if (b.pid == 0) {
        struct tp *tp;
        struct tp_ep *ep;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (tp_shm_open(&tp) != KEEL_OK || tp_shm_attach(tp, fds, NULL, &ep) != KEEL_OK)
            _exit(1);
        echo(tp);
    }
    for (int i = 0; i < TP_SHM_FDS; i++)
        close(fds[i]);
    kill(b.pid, SIGSTOP);
    waitpid(b.pid, NULL, WUNTRACED);
    return b;
}

static void stop(struct bench *b)
{
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    b->tp->table->close(b->tp);
    free(b->memory);
}

/* ---- one batch each ---- */

static void one_write(struct bench *b, size_t size)
{
    struct tp_op op;
    if (tp_write(b->ep, b->memory, size, KEY, 0, &op) != KEEL_OK)
        die("write");
    await_event(b, TP_DONE);
}

static void one_read(struct bench *b, size_t size)
{
    struct tp_op op;
    if (tp_read(b->ep, b->memory, size, KEY, 0, &op) != KEEL_OK)
        die("read");
    await_event(b, TP_DONE);
}

static void one_message(struct bench *b, size_t size)
{
    static uint8_t bytes[TP_MSG_MAX];
    size_t header = size < 32 ? size : 32;
    if (tp_send(b->ep, bytes, header, bytes + header, size - header, NULL) != KEEL_OK)
        die("send");
    await_event(b, TP_RECV);
}

static void go(struct bench *b)
{
    kill(b->pid, SIGCONT);
}

static void halt(struct bench *b)
{
    kill(b->pid, SIGSTOP);
    waitpid(b->pid, NULL, WUNTRACED);
}

static double batch_us(struct bench *b, void (*one)(struct bench *, size_t), size_t size, int iters)
{
    go(b);
    for (int i = 0; i < iters / 10 + 2; i++)
        one(b, size);
    double start = raw_now_us();
    for (int i = 0; i < iters; i++)
        one(b, size);
    double us = (raw_now_us() - start) / iters;
    halt(b);
    return us;
}

static double batch_kops(struct bench *b, size_t size, int outstanding, int iters)
{
    struct tp_op ops[256];
    struct tp_event events[16];
    go(b);
    one_write(b, size);
    double start = raw_now_us();
    int posted = 0, done = 0;
    while (done < iters) {
        for (; posted < iters && posted - done < outstanding; posted++)
            if (tp_write(b->ep, b->memory, size, KEY, 0, &ops[posted % 256]) != KEEL_OK)
                die("write");
        int n = tp_poll(b->tp, events, 16);
        done += n;
    }
    double kops = iters * 1e3 / (raw_now_us() - start);
    halt(b);
    return kops;
}

/* ---- side by side ---- */

static void compare(const char *what, struct raw *raw, double (*raw_batch)(struct raw *, size_t, int), struct bench *b,
                    void (*one)(struct bench *, size_t), size_t size, int iters)
{
    double theirs[BATCHES], ours[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        theirs[i] = raw_batch(raw, size, iters);
        ours[i] = batch_us(b, one, size, iters);
    }
    double raw_us = raw_median(theirs, BATCHES), us = raw_median(ours, BATCHES);
    printf("%-8s %9zu bytes  raw %9.2f us  table %9.2f us  ratio %.3f\n", what, size, raw_us, us, us / raw_us);
}

static void compare_rate(struct raw *raw, struct bench *b, size_t size, int outstanding)
{
    double theirs[BATCHES], ours[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        theirs[i] = raw_write_batch_kops(raw, size, outstanding, 5000);
        ours[i] = batch_kops(b, size, outstanding, 5000);
    }
    double raw_kops = raw_median(theirs, BATCHES), kops = raw_median(ours, BATCHES);
    printf("%d writes of %zu bytes in flight  raw %.0f thousand/s  table %.0f thousand/s  ratio %.3f\n", outstanding,
           size, raw_kops, kops, kops / raw_kops);
}

static void alone(const char *what, struct bench *b, size_t size, int iters)
{
    double us[BATCHES];
    for (int i = 0; i < BATCHES; i++)
        us[i] = batch_us(b, one_message, size, iters);
    printf("%-8s %9zu bytes  there and back %.3f us\n", what, size, raw_median(us, BATCHES));
}

static void beside(const char *what, struct bench *plain, struct bench *sealed, void (*one)(struct bench *, size_t),
                   size_t size, int iters)
{
    double a[BATCHES], b[BATCHES], ratio[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        a[i] = batch_us(plain, one, size, iters);
        b[i] = batch_us(sealed, one, size, iters);
        ratio[i] = b[i] / a[i];
    }
    printf("%-8s %9zu bytes  plain %9.2f us  sealed %9.2f us  ratio %.2f\n", what, size, raw_median(a, BATCHES),
           raw_median(b, BATCHES), raw_median(ratio, BATCHES));
}

int main(void)
{
    struct raw *raw = raw_start("127.0.0.1", "tcp", 1, MEMORY);
    if (!raw)
        return 1;
    static const uint8_t secret[32] = "for measuring";
    struct bench ofi = start_net(NULL), sealed = start_net(secret), shm = start_shm();
    static const size_t sizes[] = {8, 4096, 65536, 1 << 20, 4 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        int iters = raw_iters(sizes[i] < 65536 ? 10 : (double)sizes[i] / 4000);
        compare("write", raw, raw_write_batch_us, &ofi, one_write, sizes[i], iters);
        compare("read", raw, raw_read_batch_us, &ofi, one_read, sizes[i], iters);
    }
    compare_rate(raw, &ofi, 8, 64);
    printf("sealed beside plain, in turns:\n");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        int iters = raw_iters(sizes[i] < 65536 ? 20 : (double)sizes[i] / 500);
        beside("write", &ofi, &sealed, one_write, sizes[i], iters);
        beside("read", &ofi, &sealed, one_read, sizes[i], iters);
    }
    beside("message", &ofi, &sealed, one_message, 100, 1000);
    beside("message", &ofi, &sealed, one_message, TP_MSG_MAX, 300);
    printf("a message there and back, beside a raw 8 byte write that is delivered:\n");
    double write8 = raw_write_us(raw, 8, 1000);
    printf("raw write %.2f us, raw message of 100 bytes there and back %.2f us\n", write8,
           raw_message_us(raw, 100, 1000));
    alone("ofi", &ofi, 100, 1000);
    alone("ofi", &ofi, 1000, 1000);
    alone("ofi", &ofi, TP_MSG_MAX, 300);
    printf("cache line there and back %.0f ns\n", raw_pingpong_ns());
    alone("shm", &shm, 32, 20000);
    alone("shm", &shm, 100, 20000);
    alone("shm", &shm, TP_MSG_MAX, 2000);
    stop(&ofi);
    stop(&sealed);
    stop(&shm);
    raw_stop(raw);
    return 0;
}
