/* Two processes that do by plain sockets what two agents do that fill copies from each other: each sends its bytes in
 * blocks from shared memory, stores what comes into new shared memory through its file, and gives its processor away
 * after each round. */
#include "bench/rawlib.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 64 * 1024, SIDES = 2 };

struct raw_fill {
    _Atomic int ready, go, over;
    double us[SIDES];
    size_t bytes;
    pid_t pid[SIDES];
};

static int memory(size_t bytes, uint8_t **at)
{
    int fd = memfd_create("raw-fill", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        _exit(1);
    *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*at == MAP_FAILED)
        _exit(1);
    return fd;
}

static void side(struct raw_fill *f, int me, int out, int in)
{
    static uint8_t block[BLOCK];
    uint8_t *from, *to;
    size_t sent = 0, stored = 0, have = 0;
    (void)memory(f->bytes, &from);
    int fd = memory(f->bytes, &to);
    memset(from, 1, f->bytes);
    atomic_fetch_add(&f->ready, 1);
    while (!atomic_load(&f->go))
        usleep(1000);
    double start = raw_now_us();
    while (sent < f->bytes || stored < f->bytes) {
        if (sent < f->bytes) {
            ssize_t n = send(out, from + sent, f->bytes - sent < BLOCK ? f->bytes - sent : BLOCK, MSG_DONTWAIT);
            sent += n > 0 ? (size_t)n : 0;
        }
        ssize_t n = stored < f->bytes ? recv(in, block + have, BLOCK - have, MSG_DONTWAIT) : 0;
        have += n > 0 ? (size_t)n : 0;
        if (have == BLOCK || (have && stored + have == f->bytes)) {
            if (pwrite(fd, block, have, (off_t)stored) != (ssize_t)have)
                _exit(1);
            stored += have;
            have = 0;
        }
        sched_yield();
    }
    f->us[me] = raw_now_us() - start;
    atomic_fetch_add(&f->over, 1);
    _exit(0);
}

/* out[0] to in[1] and out[1] to in[0] */
static bool connect_both(int *out, int *in)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    bool good = listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
                listen(listener, SIDES) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0;
    for (int i = 0; good && i < SIDES; i++) {
        out[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        good = out[i] >= 0 && connect(out[i], (struct sockaddr *)&at, sizeof at) == 0 &&
               (in[SIDES - 1 - i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 &&
               setsockopt(out[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
    }
    if (listener >= 0)
        close(listener);
    raw_unpaced();
    return good;
}

struct raw_fill *raw_fill_start(size_t bytes)
{
    int out[SIDES] = {-1, -1}, in[SIDES] = {-1, -1};
    struct raw_fill *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED || !connect_both(out, in))
        return NULL;
    f->bytes = bytes;
    for (int i = 0; i < SIDES; i++)
        if ((f->pid[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            side(f, i, out[i], in[i]);
        }
    for (int i = 0; i < SIDES; i++) {
        close(out[i]);
        close(in[i]);
    }
    while (atomic_load(&f->ready) < SIDES && waitpid(-1, NULL, WNOHANG) == 0)
        usleep(1000);
    atomic_store(&f->go, 1);
    return f;
}

bool raw_fill_runs(struct raw_fill *f)
{
    siginfo_t ended = {0}; /* or it could not go on */
    return atomic_load(&f->over) < 1 && waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

double raw_fill_end(struct raw_fill *f)
{
    double rate = 0;
    for (int i = 0; i < SIDES; i++) {
        waitpid(f->pid[i], NULL, 0);
        rate += f->us[i] > 0 ? (double)f->bytes / f->us[i] / 1e3 : 0;
    }
    munmap(f, sizeof *f);
    return rate;
}
