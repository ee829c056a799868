#include "collectives/message.h"

static uint8_t *put(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (uint8_t)(v >> (8 * i));
    return p;
}

static uint64_t get(const uint8_t **p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t) * (*p)++ << (8 * i);
    return v;
}

void message_head_write(uint8_t *p, const struct message_head *h)
{
    p = put(p, h->kind, 2);
    p = put(p, h->attempt, 2);
    p = put(p, h->tag, 4);
    p = put(p, h->signature, 4);
    p = put(p, h->behind, 4);
    p = put(p, h->group, 8);
    p = put(p, h->seq, 8);
    put(p, h->epoch, 8);
}

bool message_head_read(const void *data, size_t len, struct message_head *h)
{
    const uint8_t *p = data;
    if (len < MESSAGE_HEAD)
        return false;
    h->kind = (enum message_kind)get(&p, 2);
    h->attempt = (uint16_t)get(&p, 2);
    h->tag = (uint32_t)get(&p, 4);
    h->signature = (uint32_t)get(&p, 4);
    h->behind = (uint32_t)get(&p, 4);
    h->group = get(&p, 8);
    h->seq = get(&p, 8);
    h->epoch = get(&p, 8);
    switch (h->kind) {
    case MESSAGE_VOTE:
    case MESSAGE_DECIDED:
    case MESSAGE_SKIP:
        return len == MESSAGE_HEAD + MESSAGE_VOTE_BYTES;
    case MESSAGE_DATA:
        return true;
    case MESSAGE_RESULT:
        return len >= MESSAGE_HEAD + MESSAGE_VOTE_BYTES;
    case MESSAGE_WANT:
    case MESSAGE_ASK:
    case MESSAGE_FLUSH:
    case MESSAGE_REVOKED:
    case MESSAGE_OVER:
        return len == MESSAGE_HEAD;
    default:
        return false;
    }
}

void message_vote_write(uint8_t *p, const struct vote *v)
{
    p = put(p, v->finished_min, 8);
    p = put(p, v->finished_max, 8);
    p = put(p, v->returned_max, 8);
    p = put(p, v->complete_min, 8);
    p = put(p, v->value, 8);
    p = put(p, v->signature_min, 4);
    p = put(p, v->signature_max, 4);
    p = put(p, v->holder_min, 4);
    put(p, v->trouble, 4);
}

void message_vote_read(const uint8_t *p, struct vote *v)
{
    v->finished_min = get(&p, 8);
    v->finished_max = get(&p, 8);
    v->returned_max = get(&p, 8);
    v->complete_min = get(&p, 8);
    v->value = get(&p, 8);
    v->signature_min = (uint32_t)get(&p, 4);
    v->signature_max = (uint32_t)get(&p, 4);
    v->holder_min = (uint32_t)get(&p, 4);
    v->trouble = (uint32_t)get(&p, 4);
}
