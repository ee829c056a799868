/* counting TIMES BYTES: known work. Two ranks a node. Each puts, gets, adds and counts TIMES times at its neighbour on
 * the node, and as often at one of another node. Two threads, one after the other, put TIMES words to the
 * neighbour. Says that it is done, and waits to be ended. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DOUBLES = 3, THREADS = 2 };

static keel_segment *segment;
static int times;
static size_t bytes;
static char *buffer;

static void must(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, keel_status_text(status));
    exit(1);
}

static void work(int rank)
{
    const double add[DOUBLES] = {1, 2, 3};
    int64_t old;
    for (int i = 0; i < times; i++) {
        must(keel_put(segment, rank, 0, buffer, bytes), "keel_put");
        must(keel_get(segment, rank, 0, buffer, bytes), "keel_get");
        must(keel_acc_double(segment, rank, bytes, 1.0, add, DOUBLES), "keel_acc_double");
        must(keel_fetch_add(segment, rank, bytes + sizeof add, 1, &old), "keel_fetch_add");
    }
}

static void *thread(void *arg)
{
    for (int i = 0; i < times; i++)
        must(keel_put(segment, *(int *)arg, 0, buffer, 8), "keel_put");
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    times = (int)strtol(argv[1], NULL, 10);
    bytes = (size_t)strtol(argv[2], NULL, 10);
    must(keel_init(), "keel_init");
    buffer = calloc(1, bytes + 8);
    must(keel_segment_alloc(bytes + (DOUBLES + 1) * 8, KEEL_REDUNDANCY_NONE, &segment), "keel_segment_alloc");
    int beside = keel_rank() ^ 1, elsewhere = (keel_rank() + 2) % keel_size();
    work(beside);
    work(elsewhere);
    for (int i = 0; i < THREADS; i++) { /* one after the other */
        pthread_t t;
        if (pthread_create(&t, NULL, thread, &beside) != 0)
            return 1;
        pthread_join(t, NULL);
    }
    printf("done\n");
    fflush(stdout);
    for (;;)
        pause();
}
