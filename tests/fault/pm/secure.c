/* For secure.py. Each time a line comes on rank 0's standard input rank 1 puts a new text, many times over, into rank
 * 0's part, whose copies are on two nodes, and the last rank reads it there. */
#include <keel/keel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 96 * 1024 };

static void check(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", keel_rank(), what, keel_status_text(status));
    exit(1);
}

static void text_of(int round, char *out)
{
    for (int at = 0; at < BYTES; at += 32)
        snprintf(out + at, 32, "attack at dawn, says %4d %4d;", round % 1000, at / 32 % 10000);
}

int main(void)
{
    static char text[BYTES], seen[BYTES];
    check(keel_init(), "init");
    keel_segment *segment;
    check(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &segment), "segment_alloc");
    int64_t round = 0;
    keel_segment *go;
    check(keel_segment_alloc(sizeof round, KEEL_REDUNDANCY_SHADOW, &go), "segment_alloc");
    for (round = 1; round > 0;) {
        text_of((int)round, text);
        if (keel_rank() == 1)
            check(keel_put(segment, 0, 0, text, BYTES), "put");
        check(keel_barrier(), "barrier");
        if (keel_rank() == keel_size() - 1) {
            check(keel_get(segment, 0, 0, seen, BYTES), "get");
            if (memcmp(seen, text, BYTES) != 0) {
                fprintf(stderr, "WRONG data in round %d\n", (int)round);
                exit(1);
            }
        }
        check(keel_barrier(), "barrier");
        if (keel_rank() == 0) {
            char line[16];
            printf("round %d\n", (int)round);
            fflush(stdout);
            int64_t next = fgets(line, sizeof line, stdin) ? round + 1 : 0;
            check(keel_put(go, 0, 0, &next, sizeof next), "put");
        }
        check(keel_barrier(), "barrier");
        check(keel_get(go, 0, 0, &round, sizeof round), "get");
    }
    check(keel_finalize(), "finalize");
    return 0;
}
