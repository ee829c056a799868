/* What programs call. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"

static const struct api_calls calls = {
#define STATUS_CALL(name, parameters, arguments) .name = call_##name,
#define NEAR_CALL STATUS_CALL
#define VALUE_CALL(result, name, parameters, arguments) .name = call_##name,
#define VOID_CALL(name, parameters, arguments) .name = call_##name,
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
};

/* NULL: none, and no call takes more than the look at it. Alone in its line of the cache, which nobody writes to. */
static struct {
    const struct api_calls *table;
} wrapped __attribute__((aligned(64)));

static inline const struct api_calls *wrapper_now(void)
{
    return __atomic_load_n(&wrapped.table, __ATOMIC_ACQUIRE);
}

const struct api_calls *calls_now(void)
{
    const struct api_calls *l = wrapper_now();
    return l ? l : &calls;
}

const struct api_calls *calls_wrap(const struct api_calls *wrapper)
{
    const struct api_calls *before = calls_now();
    __atomic_store_n(&wrapped.table, wrapper, __ATOMIC_RELEASE);
    process_client.ready = CLIENT_WRAPPED;
    return before;
}

// NOLINTBEGIN(bugprone-macro-parentheses) names, types and lists in parentheses
#define VALUE_CALL(result, name, parameters, arguments)                                                                \
    KEEL_EXPORT result keel_##name parameters                                                                          \
    {                                                                                                                  \
        const struct api_calls *l = wrapper_now();                                                                     \
        return __builtin_expect(l != NULL, 0) ? l->name arguments : call_##name arguments;                             \
    }
#define STATUS_CALL(name, parameters, arguments) VALUE_CALL(keel_status, name, parameters, arguments)
#define NEAR_CALL(name, parameters, arguments) /* public_rma.c */
#define VOID_CALL(name, parameters, arguments)                                                                         \
    KEEL_EXPORT void keel_##name parameters                                                                            \
    {                                                                                                                  \
        const struct api_calls *l = wrapper_now();                                                                     \
        if (__builtin_expect(l != NULL, 0))                                                                            \
            l->name arguments;                                                                                         \
        else                                                                                                           \
            call_##name arguments;                                                                                     \
    }
#include "runtime/client/api/calls.inc"
// NOLINTEND(bugprone-macro-parentheses)
