/* armci-stopped: the last process is stopped (SIGSTOP) for several times KEEL_TIMEOUT_MS while the others are in
 * ARMCI_Malloc and ARMCI_Free, of all and of a group: they wait for it, as ARMCI has no call to go on with, and have
 * what they asked for when it goes on. Exit 0 if all is right. */
#include <armci.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

enum { TAG = 7, BYTES = 64, TIMEOUT_MS = 200 };

static int me, n;

static void *wake(void *pid)
{
    usleep(4 * TIMEOUT_MS * 1000); /* the others' calls have ended by their time-out, and again */
    EXPECT(kill(*(pid_t *)pid, SIGCONT) == 0);
    return NULL;
}

/* The call of all but the last, who stops before it makes it. */
static void beside_a_stopped_one(int (*call)(void *), void *what)
{
    pid_t pid = getpid();
    pthread_t thread;
    const bool first = me == 0;
    if (me == n - 1)
        armci_msg_snd(TAG, &pid, sizeof pid, 0);
    if (first)
        armci_msg_rcv(TAG, &pid, sizeof pid, NULL, n - 1);
    ARMCI_Barrier();
    if (first)
        EXPECT(!pthread_create(&thread, NULL, wake, &pid));
    if (me == n - 1)
        raise(SIGSTOP);
    EXPECT(call(what) == 0);
    if (first)
        pthread_join(thread, NULL);
}

struct memory {
    ARMCI_Group *group; /* NULL: of all */
    void **base;
};

static int make(void *memory)
{
    struct memory *m = memory;
    return m->group ? ARMCI_Malloc_group(m->base, BYTES, m->group) : ARMCI_Malloc(m->base, BYTES);
}

static int release(void *memory)
{
    struct memory *m = memory;
    return m->group ? ARMCI_Free_group(m->base[me], m->group) : ARMCI_Free(m->base[me]);
}

static void run(ARMCI_Group *group)
{
    struct memory m = {group, calloc((size_t)n, sizeof(void *))};
    int right = (me + 1) % n, word = me;
    EXPECT(m.base);
    beside_a_stopped_one(make, &m);
    EXPECT(ARMCI_Put(&word, m.base[right], sizeof word, right) == 0);
    ARMCI_Barrier();
    EXPECT(*(int *)m.base[me] == (me + n - 1) % n);
    beside_a_stopped_one(release, &m);
    free(m.base);
}

int main(void)
{
    ARMCI_Group all;
    int *list;
    setenv("KEEL_TIMEOUT_MS", "200", 1);
    EXPECT(ARMCI_Init() == 0);
    me = armci_msg_me();
    n = armci_msg_nproc();
    run(NULL);
    list = calloc((size_t)n, sizeof *list);
    EXPECT(list);
    for (int r = 0; r < n; r++)
        list[r] = r;
    ARMCI_Group_create(n, list, &all);
    run(&all);
    ARMCI_Group_free(&all);
    free(list);
    return ARMCI_Finalize();
}
