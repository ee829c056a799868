/* What the lists of operations are written with (operations.inc, contributions.inc). */
#ifndef KEEL_CLIENT_INJECT_OPERATION_H
#define KEEL_CLIENT_INJECT_OPERATION_H

#include "runtime/client/api/public_coll.h"
#include "runtime/client/inject/inject.h"

/* 0: the call is wrong, and the library will say so. */
static inline size_t times(size_t n, size_t size)
{
    size_t all;
    return __builtin_mul_overflow(n, size, &all) ? 0 : all;
}

static inline size_t combined_bytes(size_t n, const keel_combine *how)
{
    struct engine_call call = {.len = 0};
    return how && public_coll_combine(&call, how, n) ? call.len : 0;
}

static inline size_t of_members(const keel_group *group, size_t len)
{
    int n = inject_below->group_size(group);
    return n > 0 ? times((size_t)n, len) : 0;
}

static inline bool is_root(const keel_group *group, int root)
{
    return inject_below->group_rank(group) == root;
}

static inline struct inject_operation of(const char *call, int target, const keel_segment *segment, uint64_t offset,
                                         const void *at, size_t len)
{
    return (struct inject_operation){call, target, segment, offset, {.at = at, .len = at ? len : 0}};
}

#define P(...) (__VA_ARGS__)
/* A collective, and the one that only begins. */
#define MOVES(name, bytes, parameters, begins, arguments, beginning)                                                   \
    O(group_##name, of("keel_group_" #name, -1, NULL, 0, in, bytes), parameters, arguments)                            \
    O(group_##name##_begin, of("keel_group_" #name "_begin", -1, NULL, 0, in, bytes), begins, beginning)
#define COMBINES(name, ...) MOVES(name, combined_bytes(n, how), __VA_ARGS__)
#endif
