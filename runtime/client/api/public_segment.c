/* The public calls of keel/segment.h, on the process's instance. */
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/export.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/process.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/client/segment/segment_part.h"

keel_status call_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    return segment_alloc(&process_client, bytes_per_rank, redundancy, out);
}

keel_status call_segment_alloc_parts(const size_t *bytes, keel_redundancy redundancy, keel_segment **out)
{
    return segment_alloc_parts(&process_client, bytes, redundancy, out);
}

keel_status call_segment_alloc_group(keel_group *group, const size_t *bytes, keel_redundancy redundancy,
                                     keel_segment **out)
{
    keel_group *g = public_group_of(group);
    if (!g && out)
        *out = NULL;
    return g ? segment_alloc_group(g, bytes, redundancy, out) : public_wrong();
}

keel_status call_segment_describe(const keel_segment *segment, int rank, keel_segment_part *out)
{
    return process_client.ready ? segment_describe(segment, rank, out) : KEEL_ERR_STATE;
}

keel_status call_segment_attach(const keel_segment_part *part, keel_segment **out)
{
    if (process_client.ready)
        return segment_attach_part(&process_client, part, out);
    if (out)
        *out = NULL;
    return KEEL_ERR_STATE;
}

keel_status call_segment_free(keel_segment *segment)
{
    return segment_free(&process_client, segment);
}

void *call_address(keel_segment *segment, int rank)
{
    return process_client.ready ? segment_address(segment, rank) : NULL;
}

keel_status call_locate(int rank, const void *address, keel_segment **segment, size_t *offset)
{
    return segment_locate(&process_client, rank, address, segment, offset);
}

size_t call_segment_bytes_per_rank(const keel_segment *segment)
{
    return segment && process_client.ready ? (size_t)segment->largest : 0;
}

size_t call_segment_bytes(const keel_segment *segment, int rank)
{
    return segment && process_client.ready && rank >= 0 && rank < process_client.size
               ? (size_t)segment->part_bytes[rank]
               : 0;
}

keel_redundancy call_segment_redundancy(const keel_segment *segment)
{
    return segment && process_client.ready ? segment->redundancy : KEEL_REDUNDANCY_NONE;
}

static_assert((int)KEEL_COPIES_MAX == (int)LEGS_MAX, "a part has as many copies");

keel_status call_segment_copies(const keel_segment *segment, int rank, int nodes[KEEL_COPIES_MAX], int *n)
{
    return process_client.ready ? segment_copies(segment, rank, nodes, n) : KEEL_ERR_STATE;
}

/* In front of the memory is a page that says how long it is. */
KEEL_EXPORT void *keel_local_alloc(size_t bytes)
{
    enum { PAGE = 4096, LARGE = 2 * 1024 * 1024 };
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t whole = bytes + PAGE;
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (bytes >= LARGE)
        (void)madvise(memory, whole, MADV_HUGEPAGE);
    memcpy(memory, &whole, sizeof whole);
    return memory + PAGE;
}

KEEL_EXPORT void keel_local_free(void *memory)
{
    enum { PAGE = 4096 };
    size_t whole;
    if (!memory)
        return;
    char *begin = (char *)memory - PAGE;
    memcpy(&whole, begin, sizeof whole);
    (void)munmap(begin, whole);
}
