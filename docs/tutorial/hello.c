/* Every rank says who it is and where it runs. */
#include <keel/keel.h>

#include <stdio.h>

int main(void)
{
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "hello: %s\n", keel_status_text(status));
        return 2;
    }
    printf("rank %d of %d on node %d\n", keel_rank(), keel_size(), keel_rank_node(keel_rank()));
    status = keel_barrier();
    return keel_finalize() == KEEL_OK && status == KEEL_OK ? 0 : 1;
}
