/* Allocation, and from (process, address) to (segment, offset).
 *
 * A collective allocation is a Keel segment, of all processes or of a group. Its addresses are the same everywhere
 * (keel_address). */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

/* The part of a process of the group's list that died before all had made the group: memory of the group's first
 * member. */
struct lodger {
    int proc;
    keel_segment *segment;
};

struct block {
    struct block *next;
    keel_segment *segment;
    keel_group *group;
    bool nobodys; /* nobody has asked for anything */
    bool copied;  /* plain stores are brought to its copies when all its processes meet */
    void *base;   /* of this process's part, NULL: it asked for nothing */
    int64_t number;
    int host, lodgers; /* lodgers: 0 but for groups that lack members */
    struct lodger *lodger;
};

static struct block *blocks;
static int64_t numbers; /* of blocks so far: the same at all members of a block's group only if it is the world */

static keel_redundancy read_redundancy(void)
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

/* Each barrier asks. */
static keel_redundancy redundancy(void)
{
    static bool known;
    static keel_redundancy is;
    if (!known)
        is = read_redundancy();
    known = true;
    return is;
}

static const keel_combine largest = {.type = KEEL_INT64, .op = KEEL_MAX};

static bool is_world(const keel_group *g)
{
    return keel_group_size(g) == keel_size();
}

/* What each member asks for. Of the dead nobody knows what they would have asked for (0), and programs whose arrays go
 * on over all processes use their parts: they are larger than a distribution by blocks would make them beside those of
 * the living. What is not written to takes no memory before copies of it are filled elsewhere.
 * *room: of a dead one's part. missing: that many have no place in the Keel group. */
static keel_status ask_sizes(keel_group *g, int missing, armci_size_t size, size_t *bytes, size_t *room)
{
    enum { SOME = 64, MORE = 64 * 1024 };
    int members = keel_group_size(g);
    int64_t mine = size + 1, *sizes = calloc((size_t)members, sizeof *sizes), most = 1;
    keel_status status = sizes ? keel_group_allgather(g, &mine, sizes, sizeof mine) : KEEL_ERR_NOMEM;
    for (int m = 0; status == KEEL_OK && m < members; m++) {
        most = sizes[m] > most ? sizes[m] : most;
        missing += !sizes[m];
    }
    *room = 2 * (size_t)(most - 1) + MORE;
    /* All may be at the dead: those that live have an address each, by which it is freed. */
    size_t least = missing && most == 1 ? SOME : 0;
    for (int m = 0; status == KEEL_OK && m < members; m++)
        bytes[m] = !sizes[m] ? *room : sizes[m] == 1 ? least : (size_t)sizes[m] - 1;
    free(sizes);
    return status;
}

/* Who is stopped is waited for: ARMCI's programs know of no call that is to be made again. */
static keel_status allocate(keel_group *g, size_t *bytes, keel_segment **segment)
{
    keel_status status;
    if (!is_world(g)) {
        while ((status = keel_segment_alloc_group(g, bytes, redundancy(), segment)) == KEEL_ERR_TIMEOUT)
            ;
        return status;
    }
    size_t *of_rank = malloc((size_t)keel_size() * sizeof *of_rank);
    for (int r = 0; of_rank && r < keel_size(); r++)
        of_rank[r] = bytes[keel_group_from_world(g, r)];
    while ((status = keel_segment_alloc_parts(of_rank, redundancy(), segment)) == KEEL_ERR_TIMEOUT)
        ;
    free(of_rank);
    return status;
}

static keel_status release(keel_segment *s)
{
    keel_status status;
    while ((status = keel_segment_free(s)) == KEEL_ERR_TIMEOUT)
        ;
    return status;
}

/* A part for each process of the list that the Keel group lacks. */
static keel_status take_in(struct block *b, const ARMCI_Group *group, size_t room, const char *call)
{
    int members = keel_group_size(b->group);
    size_t *bytes = calloc((size_t)members, sizeof *bytes);
    b->lodger = calloc((size_t)(group->size - members), sizeof *b->lodger);
    b->host = keel_group_to_world(b->group, 0);
    if (!bytes || !b->lodger)
        armci_end(call, keel_rank(), "out of memory");
    bytes[0] = room;
    keel_status status = KEEL_OK;
    for (int m = 0; status == KEEL_OK && m < group->size; m++) {
        struct lodger l = {.proc = group->grp_to_abs[m]};
        if (keel_group_from_world(b->group, l.proc) < 0 && (status = allocate(b->group, bytes, &l.segment)) == KEEL_OK)
            b->lodger[b->lodgers++] = l;
    }
    free(bytes);
    return status;
}

static const struct lodger *lodger_of(const struct block *b, int proc)
{
    for (int i = 0; i < b->lodgers; i++)
        if (b->lodger[i].proc == proc)
            return &b->lodger[i];
    return NULL;
}

/* Collective, as what made them. */
static keel_status give_back(struct block *b)
{
    keel_status status = b->segment ? release(b->segment) : KEEL_OK;
    for (int i = 0; i < b->lodgers; i++) {
        keel_status of = release(b->lodger[i].segment);
        status = status == KEEL_OK ? of : status;
    }
    free(b->lodger);
    free(b);
    return status;
}

/* group: NULL where the numbers in it are those of the Keel group. */
static int give(struct block *b, const ARMCI_Group *group, const size_t *bytes, void **base_ptrs)
{
    b->copied = redundancy() != KEEL_REDUNDANCY_NONE;
    if (b->copied) /* also who has no part of it may store into those of its node */
        armci_check(keel_segment_track(b->segment), "ARMCI_Malloc", keel_rank());
    for (int m = 0; group && m < group->size; m++)
        base_ptrs[m] = NULL;
    b->nobodys = true;
    for (int m = 0; m < keel_group_size(b->group); m++) {
        b->nobodys = b->nobodys && !bytes[m];
        int at = group ? group->abs_to_grp[keel_group_to_world(b->group, m)] : m;
        base_ptrs[at] = bytes[m] ? keel_address(b->segment, keel_group_to_world(b->group, m)) : NULL;
        if (bytes[m] && !base_ptrs[at])
            armci_end("ARMCI_Malloc", keel_rank(), "no memory, or no descriptor, to map what is on this node");
    }
    for (int i = 0; group && i < b->lodgers; i++) {
        const struct lodger *l = &b->lodger[i];
        void **base = &base_ptrs[group->abs_to_grp[l->proc]];
        *base = keel_address(l->segment, b->host);
        if (!*base)
            armci_end("ARMCI_Malloc", keel_rank(), "no memory, or no descriptor, to map what is on this node");
        if (b->copied)
            armci_check(keel_segment_track(l->segment), "ARMCI_Malloc", keel_rank());
    }
    b->base = base_ptrs[group ? group->rank : keel_group_rank(b->group)];
    b->number = ++numbers;
    b->next = blocks;
    blocks = b;
    return 0;
}

static int malloc_on(keel_group *g, const ARMCI_Group *group, void **base_ptrs, armci_size_t size, const char *call)
{
    armci_running(call);
    struct block *b = calloc(1, sizeof *b);
    size_t *bytes = calloc((size_t)keel_group_size(g), sizeof *bytes);
    if (!b || !bytes)
        armci_end(call, keel_rank(), "out of memory");
    if (size < 0 || !base_ptrs)
        armci_end(call, keel_rank(), "negative size, or no place for the addresses");
    b->group = g;
    int missing = group ? group->size - keel_group_size(g) : 0;
    size_t room = 0;
    keel_status status = ask_sizes(g, missing, size, bytes, &room);
    if (status == KEEL_OK)
        status = allocate(g, bytes, &b->segment);
    if (status == KEEL_OK && missing)
        status = take_in(b, group, room, call);
    armci_loss_look();
    int failed = status == KEEL_OK ? give(b, group, bytes, base_ptrs) : 1;
    if (failed)
        (void)give_back(b);
    free(bytes);
    return failed;
}

int armci_malloc_on(keel_group *g, void **base_ptrs, armci_size_t size, const char *call)
{
    return malloc_on(g, NULL, base_ptrs, size, call);
}

ARMCI_EXPORT int ARMCI_Malloc(void **base_ptrs, armci_size_t size)
{
    return armci_malloc_on(keel_group_world(), base_ptrs, size, "ARMCI_Malloc");
}

ARMCI_EXPORT int ARMCI_Malloc_group(void **base_ptrs, armci_size_t size, ARMCI_Group *group)
{
    return malloc_on(armci_group(group, "ARMCI_Malloc_group"), group, base_ptrs, size, "ARMCI_Malloc_group");
}

/* Which allocation is it? Each process gives its own pointer, which is NULL where it asked for nothing: those that know
 * tell whose parts begin where, in the one of their group's blocks. */
static struct block *block_of(const keel_group *g, const void *ptr)
{
    for (struct block *b = blocks; b; b = b->next)
        if (ptr && b->base == ptr && b->group == g)
            return b;
    return NULL;
}

/* NULL of all members: memory of which nobody has a part. NULL: there is none of it; those that had parts have died
 * since. */
static struct block *block_of_nobody(const keel_group *g)
{
    struct block *b = blocks;
    while (b && (b->group != g || !b->nobodys))
        b = b->next;
    return b;
}

/* The same number at all members: how many allocations of the group are older. */
static int64_t place_of(const keel_group *g, const struct block *wanted)
{
    int64_t place = 0;
    for (const struct block *b = blocks; wanted && b; b = b->next)
        place += b->group == g && b->number <= wanted->number;
    return place;
}

int armci_free_on(keel_group *g, void *ptr, const char *call)
{
    armci_running(call);
    int64_t mine = place_of(g, block_of(g, ptr)), all = 0;
    if (ptr && !mine)
        armci_end(call, keel_rank(), "not the address of this process's part, or it was freed");
    armci_check_all(keel_group_allreduce(g, &mine, &all, 1, &largest), call);
    if (all == 0 && !(all = place_of(g, block_of_nobody(g))))
        return 0;
    struct block **link = &blocks;
    while (*link && ((*link)->group != g || place_of(g, *link) != all))
        link = &(*link)->next;
    struct block *b = *link;
    if (!b || (mine && mine != all))
        armci_end(call, keel_rank(), "not what ARMCI_Malloc gave, or not the same for all");
    *link = b->next;
    return give_back(b) == KEEL_OK ? 0 : 1;
}

ARMCI_EXPORT int ARMCI_Free(void *ptr)
{
    return armci_free_on(keel_group_world(), ptr, "ARMCI_Free");
}

ARMCI_EXPORT int ARMCI_Free_group(void *ptr, ARMCI_Group *group)
{
    return armci_free_on(armci_group(group, "ARMCI_Free_group"), ptr, "ARMCI_Free_group");
}

/* When all processes meet, nobody writes to any; when a group does, nobody to what is its own. */
static bool is_still(const struct block *b, const keel_group *g)
{
    return b->copied && (is_world(g) || b->group == g);
}

/* What this process has stored, into its own part or by the pointers of others of its node: nobody stores now. */
static void bring(const struct block *b)
{
    armci_check(keel_update_flush_all(b->segment), "a barrier", keel_rank());
    for (int i = 0; i < b->lodgers; i++)
        armci_check(keel_update_flush_all(b->lodger[i].segment), "a barrier", keel_rank());
}

/* Between two meetings, so that nobody writes to what is brought to the copies. */
void armci_update_copies(keel_group *g)
{
    const struct block *b = blocks;
    while (b && !is_still(b, g))
        b = b->next;
    /* All members do the same: each has the group's blocks, but of other groups' and of its own ones the others know
     * nothing. */
    if (is_world(g) ? redundancy() == KEEL_REDUNDANCY_NONE : !b)
        return;
    (void)ARMCI_WaitAll();
    armci_check_all(keel_group_barrier(g), "a barrier");
    if (is_world(g))
        armci_memget_update();
    for (; b; b = b->next)
        if (is_still(b, g))
            bring(b);
}

void armci_memory_fini(void)
{
    while (blocks) {
        struct block *b = blocks;
        blocks = b->next;
        (void)give_back(b);
    }
}

bool armci_find(int *proc, const void *address, keel_segment **segment, size_t *offset)
{
    if (keel_locate(*proc, address, segment, offset) == KEEL_OK)
        return true;
    for (const struct block *b = blocks; b; b = b->next) {
        const struct lodger *l = lodger_of(b, *proc);
        if (l && keel_locate(b->host, address, segment, offset) == KEEL_OK && *segment == l->segment) {
            *proc = b->host;
            return true;
        }
    }
    return false;
}

keel_status armci_fence_of(int proc)
{
    keel_status status = keel_fence(proc);
    for (const struct block *b = blocks; b && status == KEEL_OK; b = b->next)
        if (lodger_of(b, proc))
            status = keel_fence(b->host);
    return status;
}

ARMCI_EXPORT int ARMCI_Malloc_memdev(void **base_ptrs, armci_size_t size, const char *device)
{
    (void)device;
    return armci_malloc_on(keel_group_world(), base_ptrs, size, "ARMCI_Malloc_memdev");
}

ARMCI_EXPORT int ARMCI_Malloc_group_memdev(void **base_ptrs, armci_size_t size, ARMCI_Group *group, const char *device)
{
    (void)device;
    return malloc_on(armci_group(group, "ARMCI_Malloc_group_memdev"), group, base_ptrs, size,
                     "ARMCI_Malloc_group_memdev");
}

ARMCI_EXPORT int ARMCI_Free_memdev(void *ptr)
{
    return armci_free_on(keel_group_world(), ptr, "ARMCI_Free_memdev");
}
