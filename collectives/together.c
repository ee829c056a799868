#include "collectives/together.h"

#include "collectives/engine_int.h"

#include <string.h>

#include "runtime/base/stream.h"

/* ---- how ---- */

static bool reduces(const struct engine_call *c)
{
    return c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_ALLREDUCE;
}

/* Does the schedule that would be taken otherwise combine in an order that is known here? */
static bool order_is_known(const struct engine_call *c, int places)
{
    struct schedule_shape shape = {.kind = c->move,
                                   .places = places,
                                   .len = c->len,
                                   .mine = c->len,
                                   .uniform = true,
                                   .ordered = c->element.op == ELEMENT_USER && !c->commutes};
    enum schedule_algorithm a = schedule_choose(&shape);
    if (c->move == SCHEDULE_REDUCE)
        return places <= 2 || a == SCHEDULE_BINOMIAL;
    return places <= 2 || a == SCHEDULE_DOUBLING ||
           a == SCHEDULE_RABENSEIFNER; /* one tree, of which the second computes a part each */
}

static bool is_rooted(const struct engine_call *c)
{
    return c->move == SCHEDULE_BCAST || c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_GATHER ||
           c->move == SCHEDULE_SCATTER;
}

static bool can_move(const struct engine_call *c, const struct roster *live)
{
    bool known = c->move <= SCHEDULE_ALLREDUCE || (c->move >= SCHEDULE_GATHER && c->move <= SCHEDULE_ALLTOALL);
    bool one_way = c->early && c->move == SCHEDULE_BCAST; /* its root waits for nobody, here all meet */
    return known && !c->varying && !one_way && !c->algorithm && (!is_rooted(c) || roster_has(live, c->root)) &&
           (!reduces(c) || order_is_known(c, roster_live(live)));
}

/* No turn without bytes: who gives returns from its last one while the others still take from it. */
static size_t even_piece(size_t len, size_t turns, size_t unit, size_t most)
{
    enum { LINE = 64 };
    size_t whole = LINE % unit ? unit : LINE, piece = (len + turns - 1) / turns;
    piece += (whole - piece % whole) % whole;
    return piece < most ? piece : most;
}

bool together_begin(struct together *t, const struct engine_call *call, const struct roster *live, int n, int self)
{
    *t = (struct together){.call = call, .live = live, .n = n, .self = self, .turns = 1, .scratch = t->scratch};
    t->given = call->kind == ENGINE_AGREE ? sizeof call->value : 0;
    if (call->shape != MEET_CUBE || roster_live(live) < 2 || call->kind == ENGINE_DECIDE)
        return false;
    if (call->kind != ENGINE_MOVE)
        return true;
    if (!can_move(call, live))
        return false;
    bool each = call->move == SCHEDULE_SCATTER || call->move == SCHEDULE_ALLTOALL; /* something else for each */
    size_t unit = reduces(call) ? element_size(&call->element) : 8, share = BOARD_CHUNK / (each ? (size_t)n : 1);
    t->piece = share - share % unit;
    if (!t->piece)
        return false;
    size_t turns = (call->len + t->piece - 1) / t->piece;
    if (turns >= BOARD_CHUNKS_MAX)
        return false;
    t->turns = (unsigned)turns | 1;
    t->piece =
        turns <= 1 ? call->len : even_piece(call->len, t->turns, unit, t->piece); /* so little lies beside the turn */
    t->given = t->piece * (each ? (size_t)n : 1);
    return !reduces(call) || roster_live(live) <= 2 || t->scratch;
}

/* What a member needs of its own bytes it takes from where they are, unless they are written over meanwhile. */
static bool keeps_own(const struct together *t)
{
    return t->call->in != t->call->out;
}

/* ---- giving ---- */

static size_t len_of(const struct together *t, unsigned chunk, size_t *at)
{
    *at = chunk * t->piece;
    size_t left = *at < t->call->len ? t->call->len - *at : 0;
    return left < t->piece ? left : t->piece;
}

/* The root gets what all give, and nobody else anything. */
static bool takes_all(const struct engine_call *c)
{
    return c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_GATHER;
}

void together_give(const struct together *t, const struct board *b, int lane, uint64_t turn, unsigned chunk)
{
    const struct engine_call *c = t->call;
    uint8_t *to = board_bytes(b, lane, t->self, turn, t->given);
    size_t at, len = len_of(t, chunk, &at);
    if (c->kind == ENGINE_AGREE)
        memcpy(to, &c->value, sizeof c->value);
    if (c->kind != ENGINE_MOVE || !len)
        return;
    bool root = c->root == t->self;
    if (c->move == SCHEDULE_BCAST) {
        if (root)
            stream_copy(to, (const uint8_t *)c->out + at, len);
    } else if (c->move == SCHEDULE_ALLTOALL || (c->move == SCHEDULE_SCATTER && root)) {
        for (size_t m = 0; m < (size_t)t->n; m++)
            if (m != (size_t)t->self || !keeps_own(t))
                stream_copy(to + m * t->piece, (const uint8_t *)c->in + m * c->len + at, len);
    } else if (c->move != SCHEDULE_SCATTER && !(takes_all(c) && root && keeps_own(t))) {
        stream_copy(to, (const uint8_t *)c->in + at, len);
    }
}

/* ---- reductions ---- */

struct operands { /* of the members of a team, by their places in it */
    const struct element *element;
    size_t len;
    int n;
    const uint8_t *bytes[BOARD_MEMBERS_MAX];
    uint8_t *scratch; /* a buffer of len for each level, the last for a user's operation */
};

static uint8_t *scratch_of(const struct operands *o, int level)
{
    return o->scratch ? o->scratch + (size_t)level * BOARD_CHUNK : NULL;
}

enum { LEVELS = 5 };

static void combine(const struct operands *o, uint8_t *dst, const uint8_t *left, const uint8_t *right)
{
    element_combine(o->element, dst, left, right, o->len / element_size(o->element), scratch_of(o, LEVELS));
}

/* Operand i of the power of two that doubling goes over: of the first, in pairs, what is too many is folded in. */
static const uint8_t *folded(const struct operands *o, int power, int i, uint8_t *dst)
{
    int rest = o->n - power;
    if (i >= rest)
        return o->bytes[i + rest];
    combine(o, dst, o->bytes[2 * i], o->bytes[2 * i + 1]);
    return dst;
}

/* Of operands first ... first + count - 1 of the power of two (doubling), or of all (power 0, binomial), into dst if
 * something is to be combined. count is a power of two. */
static const uint8_t *tree(const struct operands *o, int power, int first, int count, int level, uint8_t *dst)
{
    if (count == 1)
        return power ? folded(o, power, first, dst) : o->bytes[first];
    int half = count / 2;
    const uint8_t *left = tree(o, power, first, half, level, dst);
    if (!power && first + half >= o->n)
        return left;
    const uint8_t *right = tree(o, power, first + half, half, level + 1, scratch_of(o, level));
    combine(o, dst, left, right);
    return dst;
}

static void reduce(const struct together *t, const struct board *b, int lane, uint64_t turn, size_t at, size_t len)
{
    const struct engine_call *c = t->call;
    int n = roster_live(t->live), power = 1, root = roster_place(t->live, c->root);
    bool ordered = c->element.op == ELEMENT_USER && !c->commutes, all = c->move == SCHEDULE_ALLREDUCE;
    struct operands o = {.element = &c->element, .len = len, .n = n, .scratch = t->scratch};
    for (int place = 0; place < n; place++) {
        int from = roster_member(t->live, all || ordered ? place : (root + place) % n);
        o.bytes[place] =
            from == t->self && keeps_own(t) ? (const uint8_t *)c->in + at : board_bytes(b, lane, from, turn, t->given);
    }
    while (all ? 2 * power <= n : power < n)
        power *= 2;
    uint8_t *out = (uint8_t *)c->out + at;
    const uint8_t *result = tree(&o, all ? power : 0, 0, power, 0, out);
    if (result != out)
        memcpy(out, result, len);
}

/* ---- taking ---- */

static uint64_t agree(const struct together *t, const struct board *b, int lane, uint64_t turn)
{
    uint64_t value = t->call->value, other;
    for (int m = roster_next(t->live, 0); m >= 0; m = roster_next(t->live, m + 1)) {
        memcpy(&other, board_bytes(b, lane, m, turn, t->given), sizeof other);
        value = engine_combine(t->call->agree, value, other);
    }
    return value;
}

/* A block from each member, zeros for those that are dead. */
static void collect(const struct together *t, const struct board *b, int lane, uint64_t turn, size_t at, size_t len)
{
    const struct engine_call *c = t->call;
    bool each = c->move == SCHEDULE_ALLTOALL;
    size_t skip = each ? (size_t)t->self * t->piece : 0, own = each ? (size_t)t->self * c->len : 0;
    for (int m = 0; m < t->n; m++) {
        uint8_t *to = (uint8_t *)c->out + (size_t)m * c->len + at;
        if (m == t->self && keeps_own(t))
            memcpy(to, (const uint8_t *)c->in + own + at, len);
        else if (roster_has(t->live, m))
            memcpy(to, board_bytes(b, lane, m, turn, t->given) + skip, len);
        else
            memset(to, 0, len);
    }
}

void together_take(const struct together *t, const struct board *b, int lane, uint64_t turn, unsigned chunk,
                   uint64_t *value)
{
    const struct engine_call *c = t->call;
    size_t at, len = len_of(t, chunk, &at);
    bool root = c->root == t->self;
    if (c->kind == ENGINE_AGREE)
        *value = agree(t, b, lane, turn);
    if (c->kind != ENGINE_MOVE || !len)
        return;
    if (c->move == SCHEDULE_BCAST || c->move == SCHEDULE_SCATTER) {
        size_t skip = c->move == SCHEDULE_SCATTER ? (size_t)t->self * t->piece : 0;
        if (root && c->move == SCHEDULE_SCATTER && keeps_own(t))
            memcpy((uint8_t *)c->out + at, (const uint8_t *)c->in + (size_t)t->self * c->len + at, len);
        else if (!root || c->move == SCHEDULE_SCATTER)
            memcpy((uint8_t *)c->out + at, board_bytes(b, lane, c->root, turn, t->given) + skip, len);
    } else if (c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_ALLREDUCE) {
        if (c->move == SCHEDULE_ALLREDUCE || root)
            reduce(t, b, lane, turn, at, len);
    } else if (c->move != SCHEDULE_GATHER || root) {
        collect(t, b, lane, turn, at, len);
    }
}
