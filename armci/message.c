/* Messages and collectives, the latter on Keel's groups. Scopes: all processes, those of this node, the first of each node. */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

/* The members of SCOPE_MASTERS: each node's first. NULL: this process is none. Made when first needed, by its members only. */
static keel_group *masters;

static bool is_master(int proc)
{
    return armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_id(ARMCI_DOMAIN_SMP, proc), 0) == proc;
}

static keel_group *masters_group(void)
{
    if (masters || !is_master(keel_rank()))
        return masters;
    int n = armci_domain_count(ARMCI_DOMAIN_SMP), *ranks = malloc((size_t)n * sizeof *ranks);
    if (!ranks)
        armci_end("SCOPE_MASTERS", keel_rank(), "out of memory");
    for (int i = 0; i < n; i++)
        ranks[i] = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, i, 0);
    armci_check(keel_group_create(ranks, n, 1, &masters), "SCOPE_MASTERS", keel_rank());
    free(ranks);
    return masters;
}

/* ---- messages: a box for each sender in the receiver's part of a segment, which holds one piece of one message ---- */

enum { BOX_BYTES = 8192 };

struct box {
    int64_t full; /* changed by atomics only: set by the sender, cleared by the receiver */
    int32_t tag, total;
    char data[BOX_BYTES];
};

static keel_segment *boxes;

void armci_messages_init(void)
{
    masters = NULL;
    armci_check(keel_segment_alloc((size_t)keel_size() * sizeof(struct box), KEEL_REDUNDANCY_NONE, &boxes),
                "ARMCI_Init", keel_rank());
}

void armci_messages_fini(void)
{
    (void)keel_segment_free(boxes);
    if (masters)
        (void)keel_group_free(masters);
    masters = NULL;
}

static void box_wait(int proc, size_t at, int64_t full, const char *call)
{
    int64_t now = !full;
    for (unsigned tries = 0;; tries++) {
        armci_check(keel_get(boxes, proc, at, &now, sizeof now), call, proc);
        if (now == full)
            return;
        armci_pause(tries);
        if (!keel_rank_alive(proc))
            armci_end(call, proc, "the process is dead");
    }
}

static void box_set(int proc, size_t at, int64_t full, const char *call)
{
    armci_check(keel_rmw(boxes, proc, at, KEEL_INT64, KEEL_RMW_SWAP, &full, NULL, NULL), call, proc);
}

ARMCI_EXPORT void armci_msg_snd(int tag, void *buffer, int len, int to)
{
    size_t at = (size_t)keel_rank() * sizeof(struct box);
    const char *from = buffer;
    if (len < 0 || to < 0 || to >= keel_size())
        armci_end("armci_msg_snd", to, "a negative length, or no such process");
    for (int left = len, piece; left > 0 || from == buffer; left -= piece, from += piece) {
        struct box box = {.tag = tag, .total = len};
        piece = left < BOX_BYTES ? left : BOX_BYTES;
        if (piece)
            memcpy(box.data, from, (size_t)piece);
        box_wait(to, at, 0, "armci_msg_snd");
        armci_check(keel_put(boxes, to, at + offsetof(struct box, tag), &box.tag,
                             offsetof(struct box, data) - offsetof(struct box, tag) + (size_t)piece),
                    "armci_msg_snd", to);
        box_set(to, at, 1, "armci_msg_snd");
        if (piece == 0)
            return;
    }
}

ARMCI_EXPORT void armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from)
{
    int me = keel_rank(), had = 0, total = 0;
    size_t at = (size_t)from * sizeof(struct box);
    if (from < 0 || from >= keel_size())
        armci_end("armci_msg_rcv", from, "no such process");
    do {
        struct box box;
        box_wait(me, at, 1, "armci_msg_rcv");
        armci_check(keel_get(boxes, me, at, &box, sizeof box), "armci_msg_rcv", from);
        if (box.tag != tag)
            armci_end("armci_msg_rcv", from, "the next message of that process has another tag");
        if (box.total > buflen)
            armci_end("armci_msg_rcv", from, "the message is longer than the buffer");
        total = box.total;
        int piece = total - had < BOX_BYTES ? total - had : BOX_BYTES;
        if (piece)
            memcpy((char *)buffer + had, box.data, (size_t)piece);
        had += piece;
        box_set(me, at, 0, "armci_msg_rcv");
    } while (had < total);
    if (msglen)
        *msglen = total;
}

/* ---- scopes ---- */

/* NULL: this process has nothing to do with it. */
static keel_group *scope_group(int scope)
{
    if (scope == SCOPE_NODE)
        return keel_group_node();
    return scope == SCOPE_MASTERS ? masters_group() : keel_group_world();
}

ARMCI_EXPORT void armci_msg_barrier(void)
{
    armci_update_copies();
    armci_check_all(keel_group_barrier(keel_group_world()), "armci_msg_barrier");
}

ARMCI_EXPORT void armci_msg_group_barrier(ARMCI_Group *group)
{
    keel_group *g = armci_group(group);
    if (keel_group_size(g) == keel_size())
        armci_update_copies();
    armci_check_all(keel_group_barrier(g), "armci_msg_group_barrier");
}

/* A binary tree over the places of a scope. */
ARMCI_EXPORT void armci_msg_bintree(int scope, int *root, int *up, int *left, int *right)
{
    keel_group *g = scope_group(scope);
    *root = *up = *left = *right = -1;
    if (!g)
        return;
    int me = keel_group_rank(g), n = keel_group_size(g);
    *root = keel_group_to_world(g, 0);
    *up = me > 0 ? keel_group_to_world(g, (me - 1) / 2) : -1;
    *left = 2 * me + 1 < n ? keel_group_to_world(g, 2 * me + 1) : -1;
    *right = 2 * me + 2 < n ? keel_group_to_world(g, 2 * me + 2) : -1;
}

static void bcast(keel_group *g, void *buffer, int len, int root, const char *call)
{
    if (len < 0)
        armci_end(call, root, "a negative length");
    if (g)
        armci_check_all(keel_group_bcast(g, root, buffer, (size_t)len), call);
}

ARMCI_EXPORT void armci_msg_bcast(void *buffer, int len, int root)
{
    bcast(keel_group_world(), buffer, len, root, "armci_msg_bcast");
}

ARMCI_EXPORT void armci_msg_brdcst(void *buffer, int len, int root)
{
    bcast(keel_group_world(), buffer, len, root, "armci_msg_brdcst");
}

ARMCI_EXPORT void armci_msg_bcast_scope(int scope, void *buffer, int len, int root)
{
    keel_group *g = scope_group(scope);
    bcast(g, buffer, len, g ? keel_group_from_world(g, root) : -1, "armci_msg_bcast_scope");
}

ARMCI_EXPORT void armci_msg_group_bcast_scope(int scope, void *buffer, int len, int root, ARMCI_Group *group)
{
    if (scope == SCOPE_ALL)
        bcast(armci_group(group), buffer, len, root, "armci_msg_group_bcast_scope");
    else
        armci_msg_bcast_scope(scope, buffer, len, root);
}

/* ---- reductions ---- */

/* Of largest and smallest absolute values: what stays is the value without its sign. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define ABSOLUTE(NAME, T)                                                                                              \
    static void NAME##_absolute(const void *left, void *right, size_t n, void *largest)                                \
    {                                                                                                                  \
        const T *a = left;                                                                                             \
        T *b = right;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            T x = a[i] < 0 ? -a[i] : a[i], y = b[i] < 0 ? -b[i] : b[i];                                                \
            b[i] = (largest ? x > y : x < y) ? x : y;                                                                  \
        }                                                                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
ABSOLUTE(int, int)
ABSOLUTE(long, long)
ABSOLUTE(float, float)
ABSOLUTE(double, double)

static const struct {
    keel_type type;
    size_t size;
    void (*absolute)(const void *left, void *right, size_t n, void *largest);
} types[] = {[ARMCI_INT] = {KEEL_INT32, sizeof(int), int_absolute},
             [ARMCI_LONG] = {KEEL_INT64, sizeof(long), long_absolute},
             [ARMCI_LONG_LONG] = {KEEL_INT64, sizeof(long long), long_absolute},
             [ARMCI_FLOAT] = {KEEL_FLOAT, sizeof(float), float_absolute},
             [ARMCI_DOUBLE] = {KEEL_DOUBLE, sizeof(double), double_absolute}};

static const struct {
    const char *name;
    keel_op op;
} ops[] = {{"+", KEEL_SUM}, {"*", KEEL_PROD}, {"max", KEEL_MAX}, {"min", KEEL_MIN},
           {"or", KEEL_OR}, {"|", KEEL_OR},   {"&", KEEL_AND},   {"and", KEEL_AND}};

static keel_combine combine_of(const char *op, int type)
{
    static char yes;
    if (type < ARMCI_INT || type > ARMCI_DOUBLE)
        armci_end("a reduction", keel_rank(), "no such type");
    keel_combine how = {.type = types[type].type, .op = KEEL_USER, .commutes = true};
    if (strncmp(op, "absm", 4) == 0) {
        how.function = types[type].absolute;
        how.context = strcmp(op, "absmax") == 0 ? &yes : NULL;
        return how;
    }
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(op, ops[i].name) == 0) {
            how.op = ops[i].op;
            return how;
        }
    armci_end("a reduction", keel_rank(), "no such operation");
}

static void reduce(keel_group *g, void *x, int n, const char *op, int type)
{
    keel_combine how = combine_of(op, type);
    if (n < 0)
        armci_end("a reduction", keel_rank(), "a negative length");
    if (g)
        armci_check_all(keel_group_allreduce(g, x, x, (size_t)n, &how), "a reduction");
}

ARMCI_EXPORT void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type)
{
    reduce(scope_group(scope), x, n, op, type);
}

ARMCI_EXPORT void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group)
{
    reduce(scope == SCOPE_ALL ? armci_group(group) : scope_group(scope), x, n, op, type);
}

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define GOP(LETTER, T, TYPE)                                                                                           \
    ARMCI_EXPORT void armci_msg_##LETTER##gop(T *x, int n, char *op)                                                   \
    {                                                                                                                  \
        reduce(keel_group_world(), x, n, op, TYPE);                                                                    \
    }                                                                                                                  \
    ARMCI_EXPORT void armci_msg_group_##LETTER##gop(T *x, int n, char *op, ARMCI_Group *group)                         \
    {                                                                                                                  \
        reduce(armci_group(group), x, n, op, TYPE);                                                                    \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
GOP(i, int, ARMCI_INT)
GOP(l, long, ARMCI_LONG)
GOP(ll, long long, ARMCI_LONG_LONG)
GOP(f, float, ARMCI_FLOAT)
GOP(d, double, ARMCI_DOUBLE)

/* ---- selection: everybody gets the n bytes of who has the largest or smallest first element ---- */

static bool is_before(const void *a, const void *b, int type)
{
    /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define LESS(T)                                                                                                        \
    do {                                                                                                               \
        T x, y;                                                                                                        \
        memcpy(&x, a, sizeof x);                                                                                       \
        memcpy(&y, b, sizeof y);                                                                                       \
        return x < y;                                                                                                  \
    } while (0)
    /* NOLINTEND(bugprone-macro-parentheses) */
    switch (type) {
    case ARMCI_INT:
        LESS(int);
    case ARMCI_LONG:
    case ARMCI_LONG_LONG:
        LESS(long);
    case ARMCI_FLOAT:
        LESS(float);
    default:
        LESS(double);
    }
}

ARMCI_EXPORT void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute)
{
    keel_group *g = scope_group(scope);
    if (!g)
        return;
    if (n < 0 || type < ARMCI_INT || type > ARMCI_DOUBLE || (strcmp(op, "max") != 0 && strcmp(op, "min") != 0))
        armci_end("armci_msg_sel", keel_rank(), "a negative length, or no such type or operation");
    size_t one = 8 + (size_t)n, members = (size_t)keel_group_size(g);
    char *mine = calloc(members + 1, one), *all = mine + one, *best = NULL;
    if (!mine)
        armci_end("armci_msg_sel", keel_rank(), "out of memory");
    mine[0] = (char)(contribute != 0);
    memcpy(mine + 8, x, (size_t)n);
    armci_check_all(keel_group_allgather(g, mine, all, one), "armci_msg_sel");
    for (size_t m = 0; m < members; m++) {
        char *theirs = all + m * one;
        if (theirs[0] && (!best || (strcmp(op, "max") == 0 ? is_before(best + 8, theirs + 8, type)
                                                           : is_before(theirs + 8, best + 8, type))))
            best = theirs;
    }
    if (best)
        memcpy(x, best + 8, (size_t)n);
    free(mine);
}

ARMCI_EXPORT void armci_msg_sel(void *x, int n, char *op, int type, int contribute)
{
    armci_msg_sel_scope(SCOPE_ALL, x, n, op, type, contribute);
}
