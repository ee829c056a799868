#include "runtime/plane/blob.h"

#include <string.h>

/* Before the addresses and the detector's part. */
struct head {
    uint64_t incarnation;
    struct tp_addr device_addr;
    uint32_t addrs_len, helper_len;
};
_Static_assert((int)RAILS_MAX == (int)TP_RAILS_MAX, "one address a rail");
_Static_assert(sizeof(struct head) + TP_RAILS_MAX * sizeof(struct tp_addr) + HELPER_BLOB_MAX <= PLANE_BLOB_MAX, "fits");

void blob_write(const struct blob *b, struct plane_blob *out)
{
    struct head head = {.incarnation = b->incarnation, .device_addr = b->device_addr, .helper_len = b->helper.len};
    head.addrs_len = (uint32_t)addrs_write(&b->addrs, out->bytes + sizeof head);
    memcpy(out->bytes, &head, sizeof head);
    memcpy(out->bytes + sizeof head + head.addrs_len, b->helper.bytes, b->helper.len);
    out->len = (uint32_t)sizeof head + head.addrs_len + head.helper_len;
}

bool blob_read(const struct plane_blob *bytes, struct blob *out)
{
    struct head head;
    *out = (struct blob){0};
    if (bytes->len < sizeof head || bytes->len > sizeof bytes->bytes)
        return false;
    memcpy(&head, bytes->bytes, sizeof head);
    size_t rest = bytes->len - sizeof head;
    if (head.addrs_len > rest || head.helper_len != rest - head.addrs_len || head.helper_len > HELPER_BLOB_MAX ||
        head.device_addr.len > sizeof head.device_addr.bytes || head.device_addr.rail != 0 ||
        !addrs_read(bytes->bytes + sizeof head, head.addrs_len, &out->addrs))
        return false;
    out->device_addr = head.device_addr;
    out->incarnation = head.incarnation;
    out->helper.len = head.helper_len;
    memcpy(out->helper.bytes, bytes->bytes + sizeof head + head.addrs_len, head.helper_len);
    return true;
}
