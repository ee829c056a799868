/* The public calls of keel/message.h, on the process's instance. */
#include "runtime/base/export.h"
#include "runtime/client/job/process.h"
#include "runtime/client/stream/mail.h"

KEEL_EXPORT keel_status keel_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    return mail_send(&process_client, rank, tag, data, len);
}

KEEL_EXPORT keel_status keel_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return mail_receive(&process_client, rank, tag, data, max, len, from);
}

KEEL_EXPORT keel_status keel_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    return mail_test(&process_client, rank, tag, len, from);
}
