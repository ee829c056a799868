/* Which calls are operations. Lists of blocks (scatter_v, alltoall_v) and reduce_scatter are none, nor are atomics and
 * signals, whose operands are values. */
#include "runtime/client/api/public_coll.h"
#include "runtime/client/inject/inject.h"
#include "runtime/wire/arith.h"

#define BELOW inject_below

/* ---- how many bytes ---- */

/* 0: the call is wrong, and the library will say so. */
static size_t times(size_t n, size_t size)
{
    size_t all;
    return __builtin_mul_overflow(n, size, &all) ? 0 : all;
}

static size_t strided_bytes(const void *src, const keel_strided *shape)
{
    if (!src || !shape || shape->levels < 0 || shape->levels > KEEL_STRIDE_LEVELS_MAX)
        return 0;
    size_t all = shape->count[0];
    for (int i = 0; i < shape->levels; i++)
        all = times(all, shape->count[i + 1]);
    return all;
}

static size_t pieces_bytes(const keel_piece *pieces, size_t n)
{
    size_t all = 0;
    for (size_t i = 0; pieces && i < n; i++)
        if (!pieces[i].local || __builtin_add_overflow(all, pieces[i].len, &all))
            return 0;
    return all;
}

static size_t combined_bytes(size_t n, const keel_combine *how)
{
    struct engine_call call = {.len = 0};
    return how && public_coll_combine(&call, how, n) ? call.len : 0;
}

static size_t of_members(const keel_group *group, size_t len)
{
    int n = BELOW->group_size(group);
    return n > 0 ? times((size_t)n, len) : 0;
}

static bool is_root(const keel_group *group, int root)
{
    return BELOW->group_rank(group) == root;
}

/* ---- the operations ---- */

static struct inject_operation of(const char *call, int target, const keel_segment *segment, uint64_t offset,
                                  const void *at, size_t len)
{
    return (struct inject_operation){call, target, segment, offset, {.at = at, .len = at ? len : 0}};
}

static struct inject_operation of_strided(const char *call, int target, const keel_segment *segment, uint64_t offset,
                                          const void *at, const keel_strided *shape)
{
    return (struct inject_operation){
        call, target, segment, offset, {.at = at, .len = strided_bytes(at, shape), .shape = shape}};
}

static struct inject_operation of_vector(const char *call, int target, const keel_segment *segment,
                                         const keel_piece *pieces, size_t n)
{
    return (struct inject_operation){call,
                                     target,
                                     segment,
                                     pieces && n ? pieces[0].offset : 0,
                                     {.len = pieces_bytes(pieces, n), .pieces = pieces, .pieces_n = n}};
}

static keel_status inject_finalize(void)
{
    inject_end();
    return BELOW->finalize();
}

#define P(...) (__VA_ARGS__)
/* A collective, and the one that only begins. */
#define MOVES(name, bytes, parameters, begins, arguments, beginning)                                                   \
    O(group_##name, of("keel_group_" #name, -1, NULL, 0, in, bytes), parameters, arguments)                            \
    O(group_##name##_begin, of("keel_group_" #name "_begin", -1, NULL, 0, in, bytes), begins, beginning)
#define COMBINES(name, ...) MOVES(name, combined_bytes(n, how), __VA_ARGS__)

// NOLINTBEGIN(bugprone-macro-parentheses) names and lists in parentheses
#define O(name, operation, parameters, arguments)                                                                      \
    static keel_status inject_##name parameters                                                                        \
    {                                                                                                                  \
        const struct inject_operation o = operation;                                                                   \
        inject_before(&o);                                                                                             \
        keel_status status = BELOW->name arguments;                                                                    \
        inject_after(&o, status);                                                                                      \
        return status;                                                                                                 \
    }
#include "runtime/client/inject/operations.inc"
#undef O
// NOLINTEND(bugprone-macro-parentheses)

void inject_fill_in(struct api_calls *table)
{
#define O(name, operation, parameters, arguments) table->name = inject_##name;
#include "runtime/client/inject/operations.inc"
#undef O
    table->finalize = inject_finalize;
}
