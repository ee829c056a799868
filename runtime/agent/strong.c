#include "runtime/agent/strong.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/base/fault.h"
#include "runtime/base/words.h"

enum {
    AGAIN_FIRST_NS = 10000,
    AGAIN_MAX_NS = 1000000,
    LOOKS = 64,                        /* at those that wait */
    WORDS_MAX = WIRE_BODY_MAX / 8 + 1, /* aligned words that a message touches */
    MAP_WORDS = (WORDS_MAX + 63) / 64,
};

/* A strong get that is not answered yet. */
struct check {
    struct check *next;
    struct conn *conn;
    struct wire request;
    int copyset;
    uint64_t generation;
    uint64_t round; /* answers to another one do not count */
    int awaited;    /* answers of this round; 0: it is to be asked again, at again_at */
    uint64_t asked; /* position in our stream to the next copy behind the question */
    uint64_t again_at, again_ns;
    uint64_t open[MAP_WORDS];    /* words that were not yet the same in all copies */
    uint64_t differs[MAP_WORDS]; /* of this round */
    uint8_t bytes[];             /* [request.count] what is closed stays as it is */
};

/* Aligned words of memory, counted from the one that the range begins in. */
static unsigned words_of(const struct wire *w, uint32_t len)
{
    return (unsigned)((w->offset % 8 + len + 7) / 8);
}

static uint32_t map_bytes(unsigned words)
{
    return (words + 63) / 64 * 8;
}

/* The range's bytes in the word: *from.. of the range. */
static uint32_t word_at(const struct wire *w, uint32_t len, unsigned word, uint32_t *from)
{
    uint32_t head = (uint32_t)(w->offset % 8), end = 8 * (word + 1) - head;
    *from = word ? 8 * word - head : 0;
    return (end < len ? end : len) - *from;
}

static const uint8_t *memory_of(const struct agent *a, const struct wire *w, uint32_t len)
{
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    return copy && copy->base && len <= copy->bytes && w->offset <= copy->bytes - len ? copy->base + w->offset : NULL;
}

/* ---- the primary ---- */

static bool is_open(const struct check *k)
{
    for (int i = 0; i < MAP_WORDS; i++)
        if (k->open[i])
            return true;
    return false;
}

static void check_free(struct strong *s, struct check *k)
{
    struct check **link = &s->checks;
    while (*link != k)
        link = &(*link)->next;
    *link = k->next;
    free(k);
}

static void finish(struct agent *a, struct check *k, int status)
{
    execute_reply(k->conn, &k->request, status, 0, k->bytes, status == KEEL_OK ? k->request.count : 0);
    check_free(&a->strong, k);
}

/* What is open is read, and the next copy asked; it passes the question on. */
static void ask(struct agent *a, struct check *k)
{
    const struct view_copyset *g = &a->view.copyset[k->copyset];
    const uint8_t *memory = memory_of(a, &k->request, k->request.count);
    if (!memory) { /* freed meanwhile */
        finish(a, k, WIRE_RETRY);
        return;
    }
    for (unsigned i = 0; i < words_of(&k->request, k->request.count); i++)
        if (k->open[i / 64] >> (i % 64) & 1) {
            uint32_t from, len = word_at(&k->request, k->request.count, i, &from);
            words_load(k->bytes + from, memory + from, len);
        }
    struct wire w = {.type = WIRE_COMPARE,
                     .slot = k->request.slot,
                     .seg = k->request.seg,
                     .offset = k->request.offset,
                     .len = k->request.count,
                     .a = (int64_t)(k->round = ++a->strong.rounds),
                     .identity = k->generation};
    memset(k->differs, 0, sizeof k->differs);
    k->awaited = view_whole_copies(g) - 1;
    FAULT_POINT("strong.asking");
    agent_tell(a, g->copy[1].node, &w, k->bytes);
    k->asked = agent_position(a, g->copy[1].node);
}

/* The next copy passes the question on when it has it: of those behind it nothing is known until they answer. */
bool strong_waits_for(const struct agent *a, int node)
{
    int looks = LOOKS;
    for (const struct check *k = a->strong.checks; k && looks-- > 0; k = k->next) {
        const struct view_copyset *g = &a->view.copyset[k->copyset];
        int place = k->awaited ? view_copy_at(g, node) : -1;
        if (place > 0 && g->copy[place].whole && agent_acked(a, g->copy[1].node, k->asked) == (place > 1))
            return true;
    }
    return false;
}

void strong_request(struct agent *a, struct conn *c, const struct wire *w, int copyset)
{
    struct check *k = malloc(sizeof *k + w->count);
    if (!k) {
        execute_reply(c, w, KEEL_ERR_NOMEM, 0, NULL, 0);
        return;
    }
    *k = (struct check){.next = a->strong.checks,
                        .conn = c,
                        .request = *w,
                        .copyset = copyset,
                        .generation = a->view.copyset[copyset].generation,
                        .again_ns = AGAIN_FIRST_NS};
    for (unsigned i = 0; i < words_of(w, w->count); i++)
        k->open[i / 64] |= (uint64_t)1 << (i % 64);
    a->strong.checks = k;
    ask(a, k);
}

static void round_ends(struct agent *a, struct check *k)
{
    for (int i = 0; i < MAP_WORDS; i++)
        k->open[i] &= k->differs[i];
    if (!is_open(k)) {
        finish(a, k, KEEL_OK);
        return;
    }
    k->again_at = a->now + k->again_ns;
    k->again_ns = k->again_ns * 2 > AGAIN_MAX_NS ? AGAIN_MAX_NS : k->again_ns * 2;
}

void strong_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct check *k = a->strong.checks;
    while (k && k->round != (uint64_t)w->a)
        k = k->next;
    if (!k || k->awaited == 0 || w->len != map_bytes(words_of(&k->request, k->request.count)))
        return;
    (void)from; /* each copy answers a round once */
    for (uint32_t i = 0; i < w->len / 8; i++) {
        uint64_t differs;
        memcpy(&differs, (const uint8_t *)body + (size_t)8 * i, sizeof differs);
        k->differs[i] |= differs;
    }
    if (--k->awaited == 0)
        round_ends(a, k);
}

void strong_step(struct agent *a)
{
    for (struct check *k = a->strong.checks, *next; k && !a->recovery.frozen; k = next) {
        next = k->next;
        if (k->awaited == 0 && a->now >= k->again_at)
            ask(a, k);
    }
}

uint64_t strong_deadline(const struct agent *a)
{
    uint64_t at = UINT64_MAX;
    for (const struct check *k = a->strong.checks; k && !a->recovery.frozen; k = k->next)
        if (k->awaited == 0 && k->again_at < at)
            at = k->again_at;
    return at;
}

void strong_view_committed(struct agent *a)
{
    for (struct check *k = a->strong.checks, *next; k; k = next) {
        next = k->next;
        if (a->view.copyset[k->copyset].generation != k->generation)
            finish(a, k, WIRE_RETRY);
    }
}

void strong_segment_freed(struct agent *a, uint32_t seg)
{
    for (struct check *k = a->strong.checks, *next; k; k = next) {
        next = k->next;
        if (k->request.seg == seg)
            finish(a, k, WIRE_RETRY);
    }
}

void strong_forget(struct strong *s, const struct conn *c)
{
    for (struct check *k = s->checks, *next; k; k = next) {
        next = k->next;
        if (k->conn == c)
            check_free(s, k);
    }
}

void strong_fini(struct strong *s)
{
    while (s->checks)
        check_free(s, s->checks);
}

/* ---- the other copies ---- */

void strong_asked(struct agent *a, int from, const struct wire *w, const void *body)
{
    const struct store_segment *s = w->slot < a->view.nodes ? store_find(&a->store, w->seg) : NULL;
    const uint8_t *memory = memory_of(a, w, w->len);
    int copyset = s ? copyset_of(w->slot, s->redundancy) : -1;
    if (!memory || w->len > WIRE_BODY_MAX || a->view.copyset[copyset].generation != w->identity ||
        !chain_is_before(a, copyset, from))
        return; /* freed, or the primary learns of a view that ends this, too */
    uint64_t differs[MAP_WORDS] = {0};
    unsigned words = words_of(w, w->len);
    for (unsigned i = 0; i < words; i++) {
        uint32_t at, len = word_at(w, w->len, i, &at);
        if (memcmp(memory + at, (const uint8_t *)body + at, len) != 0)
            differs[i / 64] |= (uint64_t)1 << (i % 64);
    }
    struct wire answer = {.type = WIRE_COMPARED, .slot = w->slot, .a = w->a, .len = map_bytes(words)};
    FAULT_POINT("strong.compared");
    agent_tell(a, a->view.copyset[copyset].copy[0].node, &answer, differs);
    chain_relay(a, copyset, from, w, body);
}
