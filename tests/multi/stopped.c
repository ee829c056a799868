/* stopped: what collectives do while the process of a rank is stopped (keel/collective.h, keel/group.h). Three ranks or more. The last one
 * stops itself; the first lets it go on when all others have been told. Exit 0 if all is right. */
#include <keel/keel.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPECT(c)                                                                                                      \
    do {                                                                                                               \
        if (!(c)) {                                                                                                    \
            fprintf(stderr, "rank %d line %d: %s\n", keel_rank(), __LINE__, #c);                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(expression) EXPECT((expression) == KEEL_OK)

enum { TAG = 3 };

int main(void)
{
    keel_group *g, *others;
    keel_status status;
    int64_t one = 1, sum = 0;
    double mine = 1, all = 0;
    pid_t pid = getpid();
    setenv("KEEL_TIMEOUT_MS", "500", 1);
    CHECK(keel_init());
    int me = keel_rank(), last = keel_size() - 1, *list = calloc((size_t)keel_size(), sizeof *list);
    CHECK(keel_group_split(keel_group_world(), 0, 0, &g));
    EXPECT(keel_group_stopped(g) == -1);
    if (me == last) {
        CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
        CHECK(keel_group_barrier(keel_group_world()));
        raise(SIGSTOP);
        status = keel_group_barrier(g); /* given up by the others, who had all come to it */
        EXPECT(status == KEEL_ERR_REVOKED || status == KEEL_OK);
        EXPECT(keel_group_barrier(g) == KEEL_ERR_REVOKED);
        EXPECT(keel_group_stopped(g) == last);
    } else {
        if (me == 0)
            CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
        CHECK(keel_group_barrier(keel_group_world()));
        status = keel_group_barrier(g);
        EXPECT(status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_REVOKED);
        EXPECT(keel_group_stopped(g) == last);
        for (int r = 0; r < last; r++)
            list[r] = r;
        CHECK(keel_group_create(list, last, 1, &others)); /* needs its members only */
        CHECK(keel_group_allreduce(others, &one, &sum, 1, &(keel_combine){.type = KEEL_INT64, .op = KEEL_SUM}));
        EXPECT(sum == last);
        /* All live ranks: an error, and the same call goes on. */
        EXPECT(keel_allreduce_sum(&mine, &all, 1) == KEEL_ERR_TIMEOUT);
        CHECK(keel_group_barrier(others));
        if (me == 0)
            EXPECT(kill(pid, SIGCONT) == 0);
        CHECK(keel_group_free(others));
    }
    while ((status = keel_allreduce_sum(&mine, &all, 1)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(all == keel_size());
    CHECK(keel_barrier());
    CHECK(keel_group_free(g));
    free(list);
    CHECK(keel_finalize());
    return 0;
}
