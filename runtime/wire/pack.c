#include "runtime/wire/pack.h"

#include <string.h>

#include "runtime/base/words.h"

bool pack_has_room(size_t runs, size_t bytes, size_t len)
{
    size_t head = pack_head(runs + 1);
    return runs < PACK_RUNS_MAX && head <= PACK_BODY_MAX && bytes <= PACK_BODY_MAX - head &&
           len <= PACK_BODY_MAX - head - bytes;
}

void pack_begin(struct pack_writer *w, void *body, size_t runs)
{
    struct pack_run head = {.at = (uint32_t)runs};
    *w = (struct pack_writer){.body = body};
    memcpy(w->body, &head, sizeof head);
}

static size_t runs_to_come(const struct pack_writer *w)
{
    struct pack_run head;
    memcpy(&head, w->body, sizeof head);
    return head.at;
}

void pack_add(struct pack_writer *w, uint64_t at, const void *data, size_t len)
{
    struct pack_run run = {.at = (uint32_t)at, .len = (uint32_t)len};
    memcpy(w->body + pack_head(w->runs), &run, sizeof run);
    if (data)
        memcpy(w->body + pack_head(runs_to_come(w)) + w->bytes, data, len);
    w->runs++;
    w->bytes += len;
}

size_t pack_end(struct pack_writer *w, bool with_data)
{
    struct pack_run head = {.at = (uint32_t)w->runs, .len = (uint32_t)w->bytes};
    memcpy(w->body, &head, sizeof head);
    return pack_head(w->runs) + (with_data ? w->bytes : 0);
}

struct pack_run pack_run(const struct pack *p, uint32_t i)
{
    struct pack_run run;
    memcpy(&run, p->table + i * sizeof run, sizeof run);
    return run;
}

bool pack_open(struct pack *p, const void *body, size_t len, bool with_data)
{
    struct pack_run head;
    if (len < sizeof head || len > PACK_BODY_MAX)
        return false;
    memcpy(&head, body, sizeof head);
    *p = (struct pack){.table = (const uint8_t *)body + sizeof head, .runs = head.at, .bytes = head.len};
    if (head.at == 0 || head.at > PACK_RUNS_MAX || head.len > PACK_BODY_MAX || pack_head(head.at) > len ||
        len - pack_head(head.at) != (with_data ? head.len : 0))
        return false;
    if (with_data)
        p->data = (const uint8_t *)body + pack_head(head.at);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->runs; i++)
        sum += pack_run(p, i).len;
    return sum == p->bytes;
}

bool pack_fits(const struct pack *p, uint64_t room, size_t align, size_t size)
{
    for (uint32_t i = 0; i < p->runs; i++) {
        struct pack_run run = pack_run(p, i);
        if (run.len > room || run.at > room - run.len || run.at % align || run.len % size)
            return false;
    }
    return true;
}

uint64_t pack_reach(const struct pack *p)
{
    uint64_t reach = 0;
    for (uint32_t i = 0; i < p->runs; i++) {
        struct pack_run run = pack_run(p, i);
        uint64_t end = (uint64_t)run.at + run.len;
        reach = end > reach ? end : reach;
    }
    return reach;
}

void pack_scatter(const struct pack *p, uint8_t *base)
{
    const uint8_t *data = p->data;
    for (uint32_t i = 0; i < p->runs; i++) {
        struct pack_run run = pack_run(p, i);
        words_store(base + run.at, data, run.len);
        data += run.len;
    }
}

void pack_gather(const struct pack *p, const uint8_t *base, uint8_t *data)
{
    for (uint32_t i = 0; i < p->runs; i++) {
        struct pack_run run = pack_run(p, i);
        words_load(data, base + run.at, run.len);
        data += run.len;
    }
}

void pack_again(const struct pack *p, const uint8_t *base, uint8_t *body)
{
    size_t head = pack_head(p->runs);
    memcpy(body, p->table - sizeof(struct pack_run), head);
    pack_gather(p, base, body + head);
}
