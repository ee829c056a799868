/* Allocation, and from (process, address) to (segment, offset).
 *
 * A collective allocation is a Keel segment; every process has a part as large as the largest that was asked for, of which
 * memory that nobody touches takes no room. Its addresses are the same everywhere (keel_address). */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

struct block {
    struct block *next;
    keel_segment *segment;
    bool copied; /* plain stores are brought to its copies when all processes meet */
    void *base;  /* of this process's part */
};

static struct block *blocks;

static keel_redundancy redundancy(void)
{
    const char *text = getenv("KEEL_ARMCI_REDUNDANCY");
    if (!text || strcmp(text, "none") == 0)
        return KEEL_REDUNDANCY_NONE;
    if (strcmp(text, "shadow") == 0)
        return KEEL_REDUNDANCY_SHADOW;
    if (strcmp(text, "triple") == 0)
        return KEEL_REDUNDANCY_TRIPLE;
    armci_end("ARMCI_Malloc", keel_rank(), "KEEL_ARMCI_REDUNDANCY is neither none, shadow nor triple");
}

static const keel_combine largest = {.type = KEEL_INT64, .op = KEEL_MAX};

ARMCI_EXPORT int ARMCI_Malloc(void **base_ptrs, armci_size_t size)
{
    int n = keel_size();
    struct block *b = malloc(sizeof *b);
    int64_t mine = size + 1, max = 0, *sizes = malloc((size_t)n * sizeof *sizes);
    if (!b || !sizes)
        armci_end("ARMCI_Malloc", keel_rank(), "out of memory");
    if (size < 0 || !base_ptrs)
        armci_end("ARMCI_Malloc", keel_rank(), "negative size, or no place for the addresses");
    keel_status status = keel_group_allgather(keel_group_world(), &mine, sizes, sizeof mine);
    if (status == KEEL_OK)
        status = keel_group_allreduce(keel_group_world(), &mine, &max, 1, &largest);
    if (status == KEEL_OK)
        status = keel_segment_alloc((size_t)max - 1, redundancy(), &b->segment);
    armci_loss_look();
    if (status != KEEL_OK) {
        free(b);
        free(sizes);
        return 1;
    }
    b->copied = redundancy() != KEEL_REDUNDANCY_NONE;
    if (b->copied)
        armci_check(keel_segment_track(b->segment), "ARMCI_Malloc", keel_rank());
    for (int p = 0; p < n; p++) /* the dead have told no size (0); their parts are there */
        base_ptrs[p] = sizes[p] != 1 ? keel_address(b->segment, p) : NULL;
    b->base = keel_address(b->segment, keel_rank());
    b->next = blocks;
    blocks = b;
    free(sizes);
    return 0;
}

/* Which allocation is it? Each process gives its own pointer, which is NULL where it asked for nothing: those that know tell. */
static struct block *block_of(const void *ptr)
{
    for (struct block *b = blocks; b; b = b->next)
        if (ptr && b->base == ptr)
            return b;
    return NULL;
}

static int64_t number_of(const struct block *wanted)
{
    int64_t number = 0;
    for (const struct block *b = wanted; b; b = b->next)
        number++;
    return number;
}

ARMCI_EXPORT int ARMCI_Free(void *ptr)
{
    int64_t mine = number_of(block_of(ptr)), all = 0;
    keel_status status = keel_group_allreduce(keel_group_world(), &mine, &all, 1, &largest);
    struct block **link = &blocks;
    while (*link && number_of(*link) != all)
        link = &(*link)->next;
    struct block *b = *link;
    if (status != KEEL_OK || !b || all == 0 || (mine && mine != all))
        armci_end("ARMCI_Free", keel_rank(), "not what ARMCI_Malloc gave, or not the same for all");
    *link = b->next;
    status = keel_segment_free(b->segment);
    free(b);
    return status == KEEL_OK ? 0 : 1;
}

/* Between two meetings of all processes, so that nobody writes to what is brought to the copies. */
void armci_update_copies(void)
{
    const struct block *b = blocks;
    while (b && !b->copied)
        b = b->next;
    if (!b)
        return;
    (void)ARMCI_WaitAll();
    armci_check_all(keel_group_barrier(keel_group_world()), "a barrier");
    armci_check(keel_update_flush(NULL), "a barrier", keel_rank());
}

void armci_memory_fini(void)
{
    while (blocks) {
        struct block *b = blocks;
        blocks = b->next;
        (void)keel_segment_free(b->segment);
        free(b);
    }
}

bool armci_find(int proc, const void *address, keel_segment **segment, size_t *offset)
{
    return keel_locate(proc, address, segment, offset) == KEEL_OK;
}

/* Segments are for all processes: a group that lacks one gets none. */
ARMCI_EXPORT int ARMCI_Malloc_group(void **base_ptrs, armci_size_t size, ARMCI_Group *group)
{
    if (group && group->size < keel_size())
        armci_end("ARMCI_Malloc_group", keel_rank(), "allocation in a group of some processes is not supported yet");
    return ARMCI_Malloc(base_ptrs, size);
}

ARMCI_EXPORT int ARMCI_Free_group(void *ptr, ARMCI_Group *group)
{
    (void)group;
    return ARMCI_Free(ptr);
}

ARMCI_EXPORT int ARMCI_Malloc_memdev(void **base_ptrs, armci_size_t size, const char *device)
{
    (void)device;
    return ARMCI_Malloc(base_ptrs, size);
}

ARMCI_EXPORT int ARMCI_Malloc_group_memdev(void **base_ptrs, armci_size_t size, ARMCI_Group *group, const char *device)
{
    (void)device;
    return ARMCI_Malloc_group(base_ptrs, size, group);
}

ARMCI_EXPORT int ARMCI_Free_memdev(void *ptr)
{
    return ARMCI_Free(ptr);
}

ARMCI_EXPORT void *ARMCI_Malloc_local(armci_size_t size)
{
    return size < 0 ? NULL : malloc((size_t)size + !size);
}

ARMCI_EXPORT int ARMCI_Free_local(void *ptr)
{
    free(ptr);
    return 0;
}

/* Memory is shared within a node, as much as there is. */
ARMCI_EXPORT void ARMCI_Set_shm_limit(unsigned long shmemlimit)
{
    (void)shmemlimit;
}

ARMCI_EXPORT int ARMCI_Uses_shm(void)
{
    return 1;
}

ARMCI_EXPORT int ARMCI_Uses_shm_grp(ARMCI_Group *group)
{
    (void)group;
    return 1;
}

ARMCI_EXPORT void ARMCI_Access_begin(void *ptr)
{
    (void)ptr;
}

ARMCI_EXPORT void ARMCI_Access_end(void *ptr)
{
    (void)ptr;
}
