/* What remains of complete instances, for those who have not heard. */
#include "collectives/engine_int.h"

#include <stdlib.h>
#include <string.h>

void engine_forget_records(struct engine *e, int stream, uint64_t number)
{
    for (struct record **at = &e->records; *at;) {
        struct record *r = *at;
        if (seq_stream(r->seq) == stream && seq_number(r->seq) <= number) {
            *at = r->next;
            record_destroy(e, r);
        } else {
            at = &r->next;
        }
    }
}

/* Without this member the others might decide otherwise: whether a root that is gone had got the data, or why a call
 * failed, only the votes of all say. */
static bool binds(const struct engine *e, const struct instance *i, enum engine_status status)
{
    return !e->keeps && seq_stream(i->seq) == STREAM_ORDINARY &&
           (status == ENGINE_OK ? engine_is_sink(e, i) : status != ENGINE_REVOKED);
}

void engine_record_result(struct engine *e, struct instance *i, enum engine_status status)
{
    struct record *r = i->record;
    size_t len = e->keeps && status == ENGINE_OK && i->call.kind == ENGINE_MOVE ? i->out_len : 0;
    bool keeps = e->keeps && seq_stream(i->seq) == STREAM_ORDINARY && len <= r->room; /* else the others have it */
    len = keeps ? len : 0;
    i->record = NULL;
    *r = (struct record){.next = e->records,
                         .seq = i->seq,
                         .decision = i->last,
                         .keeps = keeps,
                         .binds = binds(e, i, status),
                         .status = status,
                         .len = len,
                         .room = r->room};
    if (len)
        memcpy(r->bytes, i->call.out, len);
    e->records = r;
}

bool engine_reserve_record(struct engine *e, size_t len)
{
    if (e->spare && e->spare->room >= len)
        return true;
    free(e->spare);
    e->spare = record_create(len);
    return e->spare;
}

void engine_keep_record(struct engine *e, uint64_t seq, const struct decision *d, enum engine_status status,
                        const void *bytes, size_t len)
{
    struct record *r = e->spare, *before = e->records;
    e->spare = NULL;
    if (before && before->keeps && seq_stream(before->seq) == seq_stream(seq)) { /* that of the call before */
        e->records = before->next;
        e->spare = before;
    }
    *r = (struct record){
        .next = e->records, .seq = seq, .decision = *d, .keeps = true, .status = status, .len = len, .room = r->room};
    if (len)
        memcpy(r->bytes, bytes, len);
    e->records = r;
    engine_forget_records(e, seq_stream(seq), seq_number(seq) - 1);
}
