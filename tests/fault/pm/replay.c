/* For replay.py. Rank 1 puts 1, then 2 into rank 0's part; each time rank 0 says so and waits for a line on its
 * standard input. Then it says what its part has. */
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>

static void check(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, keel_status_text(status));
    exit(1);
}

int main(void)
{
    check(keel_init(), "init");
    keel_segment *segment;
    check(keel_segment_alloc(64, KEEL_REDUNDANCY_NONE, &segment), "segment_alloc");
    for (int64_t value = 1; value <= 2; value++) {
        char line[16];
        if (keel_rank() == 1)
            check(keel_put(segment, 0, 0, &value, sizeof value), "put");
        check(keel_barrier(), "barrier");
        if (keel_rank() == 0) {
            printf("put %d\n", (int)value);
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin))
                return 1;
        }
        check(keel_barrier(), "barrier");
    }
    int64_t mine = 0;
    check(keel_get(segment, keel_rank(), 0, &mine, sizeof mine), "get");
    if (keel_rank() == 0)
        printf("has %d\n", (int)mine);
    check(keel_finalize(), "finalize");
    return 0;
}
