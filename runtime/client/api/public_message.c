/* The public calls of keel/message.h, on the process's instance. */
#include <stdlib.h>

#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/stream/mail.h"

keel_status call_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    void *wrong = flying_copy(&process_client.flying, data, len);
    keel_status status = mail_send(&process_client, rank, tag, wrong ? wrong : data, len);
    free(wrong);
    return status;
}

keel_status call_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return mail_receive(&process_client, rank, tag, data, max, len, from);
}

keel_status call_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    return mail_test(&process_client, rank, tag, len, from);
}
