/* The public calls of keel/message.h, on the process's instance. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/stream/mail.h"

/* A copy of it, with a bit that is wrong on purpose. */
static keel_status send_wrong(int rank, uint32_t tag, const void *data, size_t len)
{
    uint64_t bit = process_client.flying.bit;
    uint8_t *copy = malloc(len);
    if (copy) {
        memcpy(copy, data, len);
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        process_client.flying.len = 0;
    }
    keel_status status = mail_send(&process_client, rank, tag, copy ? copy : data, len);
    free(copy);
    return status;
}

keel_status call_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    return process_client.flying.len && process_client.flying.len == len
               ? send_wrong(rank, tag, data, len)
               : mail_send(&process_client, rank, tag, data, len);
}

keel_status call_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return mail_receive(&process_client, rank, tag, data, max, len, from);
}

keel_status call_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    return mail_test(&process_client, rank, tag, len, from);
}
