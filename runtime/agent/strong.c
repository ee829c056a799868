#include "runtime/agent/strong.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/base/fault.h"
#include "runtime/base/words.h"
#include "runtime/wire/compare.h"
#include "runtime/wire/get.h"

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
    struct msg_get get; /* what is asked for */
    int copyset;
    uint64_t generation;
    uint64_t round; /* answers to another one do not count */
    int awaited;    /* answers of this round; 0: it is to be asked again, at again_at */
    uint64_t asked; /* position in our stream to the next copy behind the question */
    uint64_t again_at, again_ns;
    uint64_t open[MAP_WORDS];    /* words that were not yet the same in all copies */
    uint64_t differs[MAP_WORDS]; /* of this round */
    uint8_t bytes[];             /* [get.bytes] what is closed stays as it is */
};

/* Aligned words of memory, counted from the one that the range begins in. */
static unsigned words_of(const struct msg_at *at, uint32_t len)
{
    return (unsigned)((at->offset % 8 + len + 7) / 8);
}

static uint32_t map_bytes(unsigned words)
{
    return (words + 63) / 64 * 8;
}

/* The range's bytes in the word: *from.. of the range. */
static uint32_t word_at(const struct msg_at *at, uint32_t len, unsigned word, uint32_t *from)
{
    uint32_t head = (uint32_t)(at->offset % 8), end = 8 * (word + 1) - head;
    *from = word ? 8 * word - head : 0;
    return (end < len ? end : len) - *from;
}

static const uint8_t *memory_of(const struct agent *a, const struct msg_at *at, uint32_t len)
{
    const struct store_copy *copy = store_copy(&a->store, at->seg, at->slot);
    return copy && copy->base && len <= copy->bytes && at->offset <= copy->bytes - len ? copy->base + at->offset : NULL;
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
    execute_reply(k->conn, k->get.request.seq, status, 0, k->bytes, status == KEEL_OK ? k->get.bytes : 0);
    check_free(&a->strong, k);
}

/* What is open is read, and the next copy asked; it passes the question on. */
static void ask(struct agent *a, struct check *k)
{
    const struct view_copyset *g = &a->view.copyset[k->copyset];
    const uint8_t *memory = memory_of(a, &k->get.request.at, k->get.bytes);
    if (!memory) { /* freed meanwhile */
        finish(a, k, WIRE_RETRY);
        return;
    }
    for (unsigned i = 0; i < words_of(&k->get.request.at, k->get.bytes); i++)
        if (k->open[i / 64] >> (i % 64) & 1) {
            uint32_t from, len = word_at(&k->get.request.at, k->get.bytes, i, &from);
            words_load(k->bytes + from, memory + from, len);
        }
    struct wire w;
    msg_compare_encode(&(struct msg_compare){.at = k->get.request.at,
                                             .len = k->get.bytes,
                                             .round = (k->round = ++a->strong.rounds),
                                             .generation = k->generation},
                       &w);
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
    struct msg_get get;
    msg_get_decode(w, &get);
    struct check *k = malloc(sizeof *k + get.bytes);
    if (!k) {
        execute_reply(c, w->seq, KEEL_ERR_NOMEM, 0, NULL, 0);
        return;
    }
    *k = (struct check){.next = a->strong.checks,
                        .conn = c,
                        .get = get,
                        .copyset = copyset,
                        .generation = a->view.copyset[copyset].generation,
                        .again_ns = AGAIN_FIRST_NS};
    for (unsigned i = 0; i < words_of(&get.request.at, get.bytes); i++)
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
    struct msg_compared m;
    msg_compared_decode(w, &m);
    struct check *k = a->strong.checks;
    while (k && k->round != m.round)
        k = k->next;
    if (!k || k->awaited == 0 || m.len != map_bytes(words_of(&k->get.request.at, k->get.bytes)))
        return;
    (void)from; /* each copy answers a round once */
    for (uint32_t i = 0; i < m.len / 8; i++) {
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
        if (k->get.request.at.seg == seg)
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
    struct msg_compare m;
    msg_compare_decode(w, &m);
    const struct store_segment *s = m.at.slot < a->view.nodes ? store_find(&a->store, m.at.seg) : NULL;
    const uint8_t *memory = memory_of(a, &m.at, m.len);
    int copyset = s ? copyset_of(m.at.slot, s->redundancy) : -1;
    if (!memory || m.len > WIRE_BODY_MAX || a->view.copyset[copyset].generation != m.generation ||
        !chain_is_before(a, copyset, from))
        return; /* freed, or the primary learns of a view that ends this, too */
    uint64_t differs[MAP_WORDS] = {0};
    unsigned words = words_of(&m.at, m.len);
    for (unsigned i = 0; i < words; i++) {
        uint32_t at, len = word_at(&m.at, m.len, i, &at);
        if (memcmp(memory + at, (const uint8_t *)body + at, len) != 0)
            differs[i / 64] |= (uint64_t)1 << (i % 64);
    }
    struct wire answer;
    msg_compared_encode(&(struct msg_compared){.slot = m.at.slot, .len = map_bytes(words), .round = m.round}, &answer);
    FAULT_POINT("strong.compared");
    agent_tell(a, a->view.copyset[copyset].copy[0].node, &answer, differs);
    chain_relay(a, copyset, from, w, body);
}
