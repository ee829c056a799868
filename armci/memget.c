/* Memory that one process makes alone and others attach by a description that it sends them: a Keel segment of the
 * group that has this process only, of which the others attach the part. */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

_Static_assert(sizeof(keel_segment_part) <= sizeof(((armci_meminfo_t *)NULL)->idlist),
               "a description has room for one of Keel's");

/* What this process has attached. Another process's memory that comes at the same place again has another
 * description. */
struct attached {
    struct attached *next;
    keel_segment *segment;
    keel_segment_part part;
    char *base;
    int uses;
};

static struct attached *attached;
static keel_group *alone; /* this process; the world if there are no others */

static keel_group *alone_group(void)
{
    const int me = keel_rank();
    if (!alone && keel_size() == 1)
        alone = keel_group_world();
    if (!alone)
        armci_check(keel_group_create(&me, 1, 2, &alone), "ARMCI_Memget", me);
    return alone;
}

ARMCI_EXPORT void ARMCI_Memget(size_t bytes, armci_meminfo_t *meminfo, int memflg)
{
    void *base = NULL;
    keel_segment *segment;
    keel_segment_part part;
    size_t offset;
    armci_running("ARMCI_Memget");
    if (!meminfo || bytes == 0 || bytes > PTRDIFF_MAX || memflg != 0)
        armci_end("ARMCI_Memget", keel_rank(), "no bytes, no place for the description, or flags that are not 0");
    if (armci_malloc_on(alone_group(), &base, (armci_size_t)bytes, "ARMCI_Memget") != 0)
        armci_end("ARMCI_Memget", keel_rank(), "out of memory");
    *meminfo = (armci_meminfo_t){.armci_addr = base, .addr = base, .size = bytes, .cpid = keel_rank()};
    if (keel_size() == 1)
        return;
    armci_check(keel_locate(keel_rank(), base, &segment, &offset), "ARMCI_Memget", keel_rank());
    armci_check(keel_segment_describe(segment, keel_rank(), &part), "ARMCI_Memget", keel_rank());
    memcpy(meminfo->idlist, &part, sizeof part);
}

/* Memory of another process; points to NULL: this process has not attached it. */
static struct attached **find(const armci_meminfo_t *meminfo)
{
    struct attached **link = &attached;
    while (*link && memcmp(&(*link)->part, meminfo->idlist, sizeof(*link)->part) != 0)
        link = &(*link)->next;
    return link;
}

static struct attached *attach(const armci_meminfo_t *meminfo)
{
    struct attached *a = calloc(1, sizeof *a);
    if (!a)
        armci_end("ARMCI_Memat", meminfo->cpid, "out of memory");
    memcpy(&a->part, meminfo->idlist, sizeof a->part);
    keel_status status = keel_segment_attach(&a->part, &a->segment);
    armci_check(status, "ARMCI_Memat", meminfo->cpid);
    if (ARMCI_Same_node(meminfo->cpid)) /* it may be stored to */
        armci_check(keel_segment_track(a->segment), "ARMCI_Memat", meminfo->cpid);
    a->base = keel_address(a->segment, meminfo->cpid);
    if (!a->base)
        armci_end("ARMCI_Memat", meminfo->cpid, "out of addresses, or the memory was given back");
    a->next = attached;
    attached = a;
    return a;
}

static void check(const char *call, const armci_meminfo_t *meminfo)
{
    armci_running(call);
    if (!meminfo || meminfo->cpid < 0 || meminfo->cpid >= keel_size() || !meminfo->armci_addr)
        armci_end(call, meminfo ? meminfo->cpid : -1, "no description of memory, or it was given back");
}

ARMCI_EXPORT void *ARMCI_Memat(armci_meminfo_t *meminfo, long offset)
{
    check("ARMCI_Memat", meminfo);
    if (meminfo->cpid == keel_rank())
        return meminfo->addr;
    struct attached *a = *find(meminfo);
    if (!a)
        a = attach(meminfo);
    a->uses++;
    return a->base + offset;
}

ARMCI_EXPORT void ARMCI_Memdt(armci_meminfo_t *meminfo, long offset)
{
    (void)offset;
    check("ARMCI_Memdt", meminfo);
    if (meminfo->cpid == keel_rank())
        return;
    struct attached **link = find(meminfo), *a = *link;
    if (!a)
        armci_end("ARMCI_Memdt", meminfo->cpid, "this process has not attached the memory");
    if (--a->uses > 0)
        return;
    *link = a->next;
    armci_check(keel_segment_free(a->segment), "ARMCI_Memdt", meminfo->cpid);
    free(a);
}

ARMCI_EXPORT void ARMCI_Memctl(armci_meminfo_t *meminfo)
{
    check("ARMCI_Memctl", meminfo);
    if (meminfo->cpid == keel_rank() && armci_free_on(alone_group(), meminfo->addr, "ARMCI_Memctl") != 0)
        armci_end("ARMCI_Memctl", keel_rank(), "the memory could not be given back");
    meminfo->addr = meminfo->armci_addr = NULL;
}

void armci_memget_update(void)
{
    for (const struct attached *a = attached; a; a = a->next)
        if (keel_segment_redundancy(a->segment) != KEEL_REDUNDANCY_NONE)
            armci_check(keel_update_flush_all(a->segment), "a barrier", keel_rank());
}

void armci_memget_fini(void)
{
    while (attached) {
        struct attached *a = attached;
        attached = a->next;
        (void)keel_segment_free(a->segment);
        free(a);
    }
    if (alone && alone != keel_group_world())
        (void)keel_group_free(alone);
    alone = NULL;
}
