/* Sessions: the first byte says which end; the rest arrives in pieces. A plain one (keelctl's, the kernel vouches) gets
 * frames through, the others must not. */
#include "pm/wire/codec.h"
#include "pm/wire/session.h"

#include <sodium.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t secret[SESSION_SECRET] = "known to nobody who fuzzes", scalar[SESSION_POINT] = {9};
    struct session s;
    struct bytes out = {0};
    if (size < 2 || sodium_init() < 0)
        return 0;
    enum session_role role = (enum session_role)(data[0] % 3);
    size_t step = 1 + data[1];
    session_init(&s, role, 7, &(struct session_key){.secret = secret}, scalar, &out);
    for (size_t at = 2; at < size; at += step) {
        uint8_t type;
        const uint8_t *body;
        size_t len;
        session_feed(&s, data + at, size - at < step ? size - at : step);
        while (session_next(&s, &out, &type, &body, &len)) {
            if (role != SESSION_PLAIN)
                abort(); /* nobody has proved anything */
            json_decref(codec_object(body, len));
        }
    }
    bytes_free(&out);
    session_fini(&s);
    return 0;
}
