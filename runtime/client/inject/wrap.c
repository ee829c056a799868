/* Which calls are operations. Lists of blocks (scatter_v, alltoall_v) and reduce_scatter are none, nor are atomics and
 * signals, whose operands are values. */
#include "runtime/client/inject/operation.h"
#include "runtime/wire/arith.h"

#define BELOW inject_below

/* ---- how many bytes ---- */

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

/* ---- the operations ---- */

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
