/* What a node tells the others of itself before the start: where its data listeners and its detector are. As bytes no
 * longer than they must be, since each node is told those of all. Pure. */
#ifndef KEEL_PLANE_BLOB_H
#define KEEL_PLANE_BLOB_H

#include "detect/helper.h"
#include "pm/plane.h"
#include "runtime/net/addrs.h"

struct blob {
    struct tp_addrs addrs;      /* by the provider that was asked for; with auto by tcp */
    struct tp_addr device_addr; /* with auto: by verbs; of length 0: no device here */
    uint64_t incarnation;
    struct helper_blob helper;
};

void blob_write(const struct blob *b, struct plane_blob *out);
/* False: no node has said this. */
bool blob_read(const struct plane_blob *bytes, struct blob *out);
#endif
