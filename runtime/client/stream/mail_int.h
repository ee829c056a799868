/* What mail.c and mail_receive.c share; nobody else includes this. */
#ifndef KEEL_CLIENT_STREAM_MAIL_INT_H
#define KEEL_CLIENT_STREAM_MAIL_INT_H

#include "runtime/client/client.h"
#include "runtime/client/stream/mail.h"

enum { MAIL_BYTES = 1024 * 1024, MAIL_TELL = MAIL_BYTES / 4, MAIL_AHEAD = MAIL_BYTES + MAIL_TELL, MAIL_OVERHEAD = 64 };

struct letter_in {
    struct letter_in *next;
    int from;
    uint64_t life;
    enum parcel_kind kind; /* PARCEL_MAIL, PARCEL_REPLICA, PARCEL_PARTNER */
    uint32_t tag;
    size_t len;
    uint8_t data[];
};

static inline uint64_t mail_weight(size_t len)
{
    return len + MAIL_OVERHEAD;
}

/* As struct known_life has it. */
static inline uint64_t mail_life(struct life life)
{
    return (uint64_t)life.incarnation + 1;
}
#endif
