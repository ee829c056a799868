/* With --check hash and all replicas also compare what has come to them: messages, and what collectives have brought. A
 * bit that was flipped on the way is in one of them only. They compare before their programs see the
 * bytes, and of three the odd one gets those of the others. Blocks of different lengths are compared at the next
 * exchange, and not replaced. */
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/digest.h"

enum { LATER_MAX = 256 };

/* What requests that are under way will bring. */
static struct later {
    const keel_request *request; /* NULL: none */
    enum replica_call call;
    void *bytes;
    size_t len;
} later[LATER_MAX];

keel_status replica_came(keel_status status, enum replica_call call, int from, uint64_t tag, void *bytes, size_t len)
{
    const void *right = bytes;
    if (status != KEEL_OK || !replica_inspects() || !bytes || !len)
        return status;
    status = replica_meet_before((enum replica_call)(call | REPLICA_CAME), from, NULL, tag, &right, len);
    if (status == KEEL_OK && replica.sets < REPLICAS_MAX)
        status = replica_meet(call);
    if (right != bytes)
        memcpy(bytes, right, len);
    return status;
}

keel_status replica_came_in_blocks(keel_status status, enum replica_call call, const void *bytes, const size_t *lens,
                                   const size_t *at, int n)
{
    uint64_t hash = 0, all = 0;
    if (status != KEEL_OK || !replica_inspects() || !bytes || !lens || !at)
        return status;
    for (int m = 0; m < n; m++) {
        hash = digest((const uint8_t *)bytes + at[m], lens[m], hash);
        all += lens[m];
    }
    replica_did((enum replica_call)(call | REPLICA_CAME), -1, NULL, 0, all, hash);
    return status;
}

keel_status replica_comes_later(keel_status status, keel_request *const *request, enum replica_call call, void *bytes,
                                size_t len)
{
    struct later *l = later;
    if (status != KEEL_OK || !replica_inspects() || !request || !bytes || !len)
        return status;
    while (l < later + LATER_MAX && l->request)
        l++;
    if (l < later + LATER_MAX)
        *l = (struct later){*request, call, bytes, len};
    else
        log_warn("%d collectives are under way: what more bring is not compared", LATER_MAX);
    return status;
}

keel_status replica_has_come(keel_status status, const keel_request *request)
{
    for (struct later *l = later; request && status != KEEL_IN_PROGRESS && l < later + LATER_MAX; l++)
        if (l->request == request) {
            l->request = NULL;
            return replica_came(status, l->call, -1, 0, l->bytes, l->len);
        }
    return status;
}
