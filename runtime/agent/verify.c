#include "runtime/agent/verify_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

enum {
    TRIES = 12,                     /* of a block that differs */
    AGAIN_NS = 25 * KEEL_NS_PER_MS, /* between them */
    WAITS = 1200,                   /* of as long, for copysets that are being made equal */
    SILENCES = 3,                   /* of ANSWER_NS: then it is over */
};
static const uint64_t ANSWER_NS = 2 * (uint64_t)KEEL_NS_PER_S;

struct verify {
    struct verify *next;
    uint64_t id;
    /* where it is */
    uint32_t seg;
    int slot;
    uint64_t offset;
    bool exact; /* this block differs: its bytes are compared, from exact_at in it */
    uint64_t exact_at;
    /* the question */
    uint64_t number, generation;
    uint32_t len;
    bool asked;
    int nodes, node[COPIES_MAX];
    struct said said[COPIES_MAX];
    uint64_t again_at; /* asked: it is asked again then; else: it is asked then */
    int tries;
    int waits, silences; /* of the whole audit: for copysets to be made equal, for answers */
    bool changed;        /* between tries */
    /* what there was */
    uint64_t bytes, single, busy; /* compared; parts with one copy; blocks that could not be compared */
    char first_busy[160];
};

static void end(struct agent *a, const char *members)
{
    struct verify *v = a->audits.first;
    a->audits.first = v->next;
    if (a->ops.verified)
        a->ops.verified(a->ops.user, v->id, members);
    free(v);
}

/* ---- where it is ---- */

static const struct store_segment *segment_at(const struct agent *a, uint32_t seg)
{
    const struct store_segment *best = NULL;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->seg >= seg && (!best || s->seg < best->seg))
            best = s;
    return best;
}

static void next_part(struct agent *a, struct verify *v)
{
    v->offset = 0;
    v->exact = false;
    v->tries = 0;
    v->changed = false;
    if (++v->slot == a->view.nodes) {
        v->slot = 0;
        v->seg++;
    }
}

static void next_block(struct verify *v, uint64_t bytes)
{
    v->offset += VERIFY_BLOCK;
    v->bytes += bytes;
    v->exact = false;
    v->tries = 0;
    v->changed = false;
}

/* Which byte it is, and the rank whose part it is in. */
static void place(const struct agent *a, const struct verify *v, uint64_t at, struct json_writer *w)
{
    const struct store_segment *s = store_find(&a->store, v->seg);
    uint64_t stride = s ? layout_stride(s->bytes_per_rank) : 0;
    json_put_all(w, J_ALL(J_UINT("segment", v->seg), J_INT("slot", v->slot), J_UINT("slot_offset", at)));
    for (int r = 0; stride && !s->uneven && r < a->view.ranks; r++)
        if (a->view.rank[r].slot == v->slot && (uint64_t)a->view.rank[r].index == at / stride)
            json_put_all(w, J_ALL(J_INT("rank", r), J_UINT("offset", at % stride)));
}

static void finish(struct agent *a, struct verify *v)
{
    char members[512];
    struct json_writer w = json_into(members, sizeof members);
    json_put_all(&w, J_ALL(J_TEXT("result", v->busy ? "busy" : "equal"), J_UINT("bytes", v->bytes),
                           J_UINT("single", v->single), J_UINT("busy", v->busy)));
    json_put_written(&w, v->busy ? v->first_busy : "");
    end(a, members);
}

static void put_copy(struct json_writer *w, int node, uint8_t byte)
{
    json_open(w, NULL, '{');
    json_put_all(w, J_ALL(J_INT("node", node), J_INT("byte", byte)));
    json_close(w, '}');
}

static void differs(struct agent *a, const struct verify *v, int copy, uint64_t at, uint32_t i)
{
    char members[512];
    struct json_writer w = json_into(members, sizeof members);
    json_put(&w, J_TEXT("result", "differs"));
    place(a, v, at, &w);
    json_open(&w, "copies", '[');
    put_copy(&w, v->node[0], v->said[0].bytes[i]);
    put_copy(&w, v->node[copy], v->said[copy].bytes[i]);
    json_close(&w, ']');
    end(a, members);
}

static void first_busy(const struct agent *a, struct verify *v)
{
    struct json_writer w = json_into(v->first_busy, sizeof v->first_busy);
    json_go_on(&w);
    place(a, v, v->offset, &w);
}

static void call_busy(struct agent *a, struct verify *v)
{
    if (v->busy++ == 0)
        first_busy(a, v);
    next_block(v, 0);
}

/* ---- asking ---- */

static uint32_t block_len(const struct verify *v, uint64_t bytes)
{
    uint64_t at = v->offset + (v->exact ? v->exact_at : 0), max = v->exact ? WIRE_BODY_MAX : VERIFY_BLOCK;
    uint64_t left = at < bytes ? bytes - at : 0;
    return (uint32_t)(left < max ? left : max);
}

static void ask(struct agent *a, struct verify *v, const struct view_copyset *g, uint32_t len)
{
    struct msg_hash m = {
        .at = {.seg = v->seg, .slot = (uint16_t)v->slot, .offset = v->offset + (v->exact ? v->exact_at : 0)},
        .bytes = len,
        .exact = v->exact,
        .question = (v->number = ++a->audits.questions)};
    struct wire w;
    msg_hash_encode(&m, &w);
    v->asked = true;
    v->len = len;
    v->generation = g->generation;
    v->again_at = a->now + ANSWER_NS;
    v->nodes = g->copies;
    for (int i = 0; i < g->copies; i++) {
        v->node[i] = g->copy[i].node;
        memcpy(v->said[i].before, v->said[i].hash, VERIFY_HASH);
        v->said[i].here = false;
    }
    for (int i = 0; i < g->copies; i++) {
        if (v->node[i] == a->self)
            verify_look(a, &m, &v->said[i]);
        else
            agent_tell(a, v->node[i], &w, NULL);
    }
}

/* Ask for the block where it is, or go on to the next that can be asked for. */
static void go_on(struct agent *a, struct verify *v)
{
    for (;;) {
        const struct store_segment *s = segment_at(a, v->seg);
        if (!s) {
            finish(a, v);
            return;
        }
        if (s->seg != v->seg) {
            v->seg = s->seg;
            v->slot = -1;
            next_part(a, v);
        }
        const struct view_copyset *g = &a->view.copyset[copyset_of(v->slot, s->redundancy)];
        uint64_t bytes = layout_copy_bytes(s->bytes_per_rank, (uint64_t)a->view.slot_ranks[v->slot]);
        uint32_t len = block_len(v, bytes);
        if (g->copies < 2 || len == 0) {
            v->single += g->copies < 2 && s->redundancy > 0;
            next_part(a, v);
        } else if (g->mode != COPYSET_DIRECT && v->waits++ < WAITS) {
            v->asked = false;
            v->again_at = a->now + AGAIN_NS;
            return;
        } else if (g->mode != COPYSET_DIRECT) {
            call_busy(a, v);
            finish(a, v);
            return;
        } else {
            ask(a, v, g, len);
            return;
        }
    }
}

/* ---- answers ---- */

static void again(struct agent *a, struct verify *v)
{
    v->asked = false;
    v->exact = false;
    v->again_at = a->now + AGAIN_NS;
}

/* Was this try as the last one, and under one generation? */
static bool is_as_before(const struct verify *v)
{
    for (int i = 0; i < v->nodes; i++)
        if (v->said[i].status != KEEL_OK || v->said[i].generation != v->generation ||
            (v->tries > 0 && memcmp(v->said[i].hash, v->said[i].before, VERIFY_HASH) != 0))
            return false;
    return true;
}

static void compare_bytes(struct agent *a, struct verify *v)
{
    uint32_t len = v->said[0].len;
    for (int i = 0; i < v->nodes; i++)
        if (v->said[i].status != KEEL_OK || v->said[i].generation != v->generation || v->said[i].len != len) {
            v->changed = true;
            again(a, v);
            return;
        }
    for (uint32_t at = 0; at < len; at++)
        for (int i = 1; i < v->nodes; i++)
            if (v->said[i].bytes[at] != v->said[0].bytes[at]) {
                differs(a, v, i, v->offset + v->exact_at + at, at);
                return;
            }
    v->exact_at += WIRE_BODY_MAX;
    if (len == 0 || v->exact_at >= VERIFY_BLOCK)
        call_busy(a, v); /* they are equal now */
    go_on(a, v);
}

static void compare(struct agent *a, struct verify *v)
{
    bool equal = true, lost = true;
    for (int i = 0; i < v->nodes; i++) {
        lost = lost && v->said[i].status == KEEL_ERR_DATA_LOST;
        equal = equal && v->said[i].status == KEEL_OK && v->said[i].generation == v->generation &&
                memcmp(v->said[i].hash, v->said[0].hash, VERIFY_HASH) == 0;
    }
    if (lost) {
        next_part(a, v);
        go_on(a, v);
    } else if (equal) {
        next_block(v, v->len);
        go_on(a, v);
    } else {
        v->changed = v->changed || !is_as_before(v);
        if (++v->tries < TRIES) {
            again(a, v);
        } else if (v->changed) {
            call_busy(a, v);
            go_on(a, v);
        } else {
            v->exact = true;
            v->exact_at = 0;
            go_on(a, v);
        }
    }
}

static void hear(struct agent *a, struct verify *v)
{
    for (int i = 0; i < v->nodes; i++)
        if (!v->said[i].here)
            return;
    v->asked = false;
    if (v->exact)
        compare_bytes(a, v);
    else
        compare(a, v);
}

void verify_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct msg_hashed m;
    msg_hashed_decode(w, &m);
    struct verify *v = a->audits.first;
    if (!v || !v->asked || m.question != v->number || m.len > (v->exact ? (uint32_t)WIRE_BODY_MAX : VERIFY_HASH))
        return;
    for (int i = 0; i < v->nodes; i++)
        if (v->node[i] == from) {
            struct said *said = &v->said[i];
            said->here = true;
            said->status = m.status;
            said->generation = m.generation;
            said->len = m.len;
            if (m.len)
                memcpy(v->exact ? said->bytes : said->hash, body, m.len);
        }
    hear(a, v);
}

/* ---- start and end ---- */

void verify_start(struct agent *a, uint64_t id)
{
    struct verify **link = &a->audits.first, *v = calloc(1, sizeof *v);
    if (!v) {
        a->ops.verified(a->ops.user, id, "\"result\":\"no memory\"");
        return;
    }
    v->id = id;
    while (*link)
        link = &(*link)->next;
    *link = v;
}

void verify_step(struct agent *a)
{
    struct verify *v = a->audits.first;
    if (!v || a->recovery.frozen || a->now < v->again_at)
        return;
    if (v->asked) { /* somebody does not answer */
        v->changed = true;
        if (++v->silences == SILENCES) {
            call_busy(a, v);
            finish(a, v);
            return;
        }
    }
    go_on(a, v);
}

uint64_t verify_deadline(const struct agent *a)
{
    return a->audits.first && !a->recovery.frozen ? a->audits.first->again_at : UINT64_MAX;
}

void verify_fini(struct audits *s)
{
    while (s->first) {
        struct verify *v = s->first;
        s->first = v->next;
        free(v);
    }
}
