/* A wrong bit in what a collective is given, and not in the program's memory: a wrapper below that of replicas, which
 * gives the library a copy. What members get of the contribution is made of that, the caller's own result, too. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/inject/operation.h"
#include "runtime/client/job/process.h"

static const struct api_calls *below;

struct flown {
    struct flown *next;
    uint8_t bytes[];
};
static struct flown *kept; /* of calls that have not ended, or ended with an error: more may be sent of it */

/* What the contribution that has the wrong bit is to be taken from. */
static void *fly(const struct inject_operation *o, const void *in, struct flown **copy)
{
    struct flying *f = &process_client.flying;
    *copy = f->len == o->bytes.len && !f->shaped ? malloc(sizeof **copy + f->len) : NULL;
    if (!*copy)
        return (void *)(uintptr_t)in;
    memcpy((*copy)->bytes, in, f->len);
    (*copy)->bytes[f->bit / 8] ^= (uint8_t)(1U << f->bit % 8);
    f->len = 0;
    inject_has_flown();
    return (*copy)->bytes;
}

static keel_status flown(const struct inject_operation *o, keel_status status, struct flown *copy)
{
    if (copy && status == KEEL_OK && !strstr(o->call, "_begin")) {
        free(copy);
    } else if (copy) {
        copy->next = kept;
        kept = copy;
    }
    return status;
}

// NOLINTBEGIN(bugprone-macro-parentheses) names and lists in parentheses
#define O(name, operation, parameters, arguments)                                                                      \
    static keel_status fly_##name parameters                                                                           \
    {                                                                                                                  \
        if (__builtin_expect(process_client.flying.len == 0, 1))                                                       \
            return below->name arguments;                                                                              \
        const struct inject_operation o = operation;                                                                   \
        struct flown *copy;                                                                                            \
        in = fly(&o, in, &copy);                                                                                       \
        return flown(&o, below->name arguments, copy);                                                                 \
    }
#include "runtime/client/inject/contributions.inc"
#undef O
// NOLINTEND(bugprone-macro-parentheses)

void inject_below_replicas(void)
{
    static struct api_calls table;
    if (!process_client.page->inject.n)
        return;
    below = calls_now();
    table = *below;
#define O(name, operation, parameters, arguments) table.name = fly_##name;
#include "runtime/client/inject/contributions.inc"
#undef O
    (void)calls_wrap(&table);
}
