#include "runtime/wire/digested.h"

#include "runtime/wire/digest.h"

size_t digested_make(struct digested *m, const void *body)
{
    struct msg_extension e = {.has_digests = true, .digest = {0, digest(body, m->wire.len, 0)}};
    m->wire.extension = (uint16_t)msg_extension_encode(&e, m->extension);
    m->wire.len += m->wire.extension;
    e.digest[0] = digest(&m->wire, sizeof m->wire, 0);
    (void)msg_extension_encode(&e, m->extension);
    return sizeof m->wire + m->wire.extension;
}

enum digested_is digested_open(const struct wire *message, struct wire *plain, const void **body)
{
    const uint8_t *extension = (const uint8_t *)(message + 1);
    struct msg_extension e;
    if (message->extension > message->len || !msg_extension_decode(extension, message->extension, &e) ||
        !e.has_digests || e.digest[0] != digest(message, sizeof *message, 0))
        return DIGESTED_WRONG;
    *plain = *message;
    plain->len -= plain->extension;
    plain->extension = 0;
    *body = extension + message->extension;
    return e.digest[1] == digest(*body, plain->len, 0) ? DIGESTED_RIGHT : DIGESTED_BODY_WRONG;
}
