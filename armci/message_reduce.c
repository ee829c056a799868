/* Reductions, and the selection of one value, on Keel's groups. */

#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

/* Of largest and smallest absolute values: what stays is the value without its sign. Of logical operations: 1 or 0. */
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
#define LOGICAL(NAME, T)                                                                                               \
    static void NAME##_logical(const void *left, void *right, size_t n, void *both)                                    \
    {                                                                                                                  \
        const T *a = left;                                                                                             \
        T *b = right;                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            b[i] = both ? a[i] && b[i] : a[i] || b[i];                                                                 \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
ABSOLUTE(int, int)
ABSOLUTE(long, long)
ABSOLUTE(float, float)
ABSOLUTE(double, double)
LOGICAL(int, int)
LOGICAL(long, long)

static const struct {
    keel_type type;
    void (*absolute)(const void *left, void *right, size_t n, void *largest);
    void (*logical)(const void *left, void *right, size_t n, void *both); /* NULL: it has no bits */
} types[] = {[ARMCI_INT] = {KEEL_INT32, int_absolute, int_logical},
             [ARMCI_LONG] = {KEEL_INT64, long_absolute, long_logical},
             [ARMCI_LONG_LONG] = {KEEL_INT64, long_absolute, long_logical},
             [ARMCI_FLOAT] = {KEEL_FLOAT, float_absolute, NULL},
             [ARMCI_DOUBLE] = {KEEL_DOUBLE, double_absolute, NULL}};

static const struct {
    const char *name;
    keel_op op;
} ops[] = {{"+", KEEL_SUM}, {"*", KEEL_PROD}, {"max", KEEL_MAX}, {"min", KEEL_MIN},  {"or", KEEL_OR},
           {"|", KEEL_OR},  {"bor", KEEL_OR}, {"&", KEEL_AND},   {"band", KEEL_AND}, {"and", KEEL_AND}};

/* What comes from Fortran has no end: its first letters count, as everywhere in ARMCI. */
static bool is_op(const char *op, const char *name)
{
    return strncmp(op, name, strlen(name)) == 0;
}

static keel_combine combine_of(const char *call, const char *op, int type)
{
    static char yes;
    if (!op || type < ARMCI_INT || type > ARMCI_DOUBLE)
        armci_end(call, keel_rank(), "no such type, or no operation");
    bool both = is_op(op, "&&") || is_op(op, "land");
    keel_combine how = {.type = types[type].type, .op = KEEL_USER, .commutes = true};
    if (is_op(op, "absmax") || is_op(op, "absmin")) {
        how.function = types[type].absolute;
        how.context = is_op(op, "absmax") ? &yes : NULL;
        return how;
    }
    if (both || is_op(op, "||") || is_op(op, "lor")) {
        how.function = types[type].logical;
        how.context = both ? &yes : NULL;
    }
    for (size_t i = 0; !how.function && i < sizeof ops / sizeof ops[0]; i++)
        if (is_op(op, ops[i].name))
            how.op = ops[i].op;
    bool of_bits = how.op == KEEL_OR || how.op == KEEL_AND;
    if ((how.op == KEEL_USER && !how.function) || (of_bits && !types[type].logical))
        armci_end(call, keel_rank(), "no such operation, or not for this type");
    return how;
}

static void reduce(const char *call, keel_group *g, void *x, int n, const char *op, int type)
{
    keel_combine how = combine_of(call, op, type);
    if (n < 0)
        armci_end(call, keel_rank(), "a negative length");
    if (!g)
        return;
    if (how.function) /* changes the result no more, and a value that meets no other one is what it promises, too */
        how.function(x, x, (size_t)n, how.context);
    armci_check_all(keel_group_allreduce(g, x, x, (size_t)n, &how), call);
}

ARMCI_EXPORT void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type)
{
    reduce("armci_msg_gop_scope", armci_scope_group(scope, "armci_msg_gop_scope"), x, n, op, type);
}

ARMCI_EXPORT void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group)
{
    const char *call = "armci_msg_group_gop_scope";
    reduce(call, scope == SCOPE_ALL ? armci_group(group, call) : armci_scope_group(scope, call), x, n, op, type);
}

static void reduce_all(const char *call, void *x, int n, const char *op, int type)
{
    armci_running(call);
    reduce(call, keel_group_world(), x, n, op, type);
}

ARMCI_EXPORT void armci_msg_reduce(void *x, int n, char *op, int type)
{
    reduce_all("armci_msg_reduce", x, n, op, type);
}

ARMCI_EXPORT void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type)
{
    reduce("armci_msg_reduce_scope", armci_scope_group(scope, "armci_msg_reduce_scope"), x, n, op, type);
}

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define GOP(LETTER, T, TYPE)                                                                                           \
    ARMCI_EXPORT void armci_msg_##LETTER##gop(T *x, int n, char *op)                                                   \
    {                                                                                                                  \
        reduce_all("armci_msg_" #LETTER "gop", x, n, op, TYPE);                                                        \
    }                                                                                                                  \
    ARMCI_EXPORT void armci_msg_group_##LETTER##gop(T *x, int n, char *op, ARMCI_Group *group)                         \
    {                                                                                                                  \
        const char *call = "armci_msg_group_" #LETTER "gop";                                                           \
        reduce(call, armci_group(group, call), x, n, op, TYPE);                                                        \
    }                                                                                                                  \
    ARMCI_EXPORT void armci_msg_clus_##LETTER##gop(T *x, int n, char *op)                                              \
    {                                                                                                                  \
        const char *call = "armci_msg_clus_" #LETTER "gop";                                                            \
        reduce(call, armci_scope_group(SCOPE_NODE, call), x, n, op, TYPE);                                             \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
GOP(i, int, ARMCI_INT)
GOP(l, long, ARMCI_LONG)
GOP(ll, long long, ARMCI_LONG_LONG)
GOP(f, float, ARMCI_FLOAT)
GOP(d, double, ARMCI_DOUBLE)

/* Each address is given by one process, and NULL by all others. */
static void exchange(const char *call, keel_group *g, void **addresses, int n)
{
    _Static_assert(sizeof(void *) == sizeof(long), "an address is summed as a long");
    reduce(call, g, addresses, n, "+", ARMCI_LONG);
}

ARMCI_EXPORT void armci_exchange_address(void *addresses[], int n)
{
    exchange("armci_exchange_address", armci_scope_group(SCOPE_ALL, "armci_exchange_address"), addresses, n);
}

ARMCI_EXPORT void armci_exchange_address_grp(void *addresses[], int n, ARMCI_Group *group)
{
    exchange("armci_exchange_address_grp", armci_group(group, "armci_exchange_address_grp"), addresses, n);
}

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

static void select_one(const char *call, keel_group *g, void *x, int n, char *op, int type, int contribute)
{
    if (!op || type < ARMCI_INT || type > ARMCI_DOUBLE || (!is_op(op, "max") && !is_op(op, "min")))
        armci_end(call, keel_rank(), "no such type or operation");
    if (n < 0 || (size_t)n < keel_type_size(types[type].type))
        armci_end(call, keel_rank(), "a negative length, or less than what is compared");
    if (!g)
        return;
    size_t one = 8 + (size_t)n, members = (size_t)keel_group_size(g);
    char *mine = calloc(members + 1, one), *all = mine + one, *best = NULL;
    if (!mine)
        armci_end(call, keel_rank(), "out of memory");
    mine[0] = (char)(contribute != 0);
    memcpy(mine + 8, x, (size_t)n);
    armci_check_all(keel_group_allgather(g, mine, all, one), call);
    for (size_t m = 0; m < members; m++) {
        char *theirs = all + m * one;
        if (theirs[0] && (!best || (is_op(op, "max") ? is_before(best + 8, theirs + 8, type)
                                                     : is_before(theirs + 8, best + 8, type))))
            best = theirs;
    }
    if (best)
        memcpy(x, best + 8, (size_t)n);
    free(mine);
}

ARMCI_EXPORT void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute)
{
    select_one("armci_msg_sel_scope", armci_scope_group(scope, "armci_msg_sel_scope"), x, n, op, type, contribute);
}

ARMCI_EXPORT void armci_msg_sel(void *x, int n, char *op, int type, int contribute)
{
    select_one("armci_msg_sel", armci_scope_group(SCOPE_ALL, "armci_msg_sel"), x, n, op, type, contribute);
}
