#include "tests/sim/coll/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/message.h"
#include "runtime/base/bitset.h"
#include "tests/sim/coll/world_int.h"

#define SEC 1000000000ull
#define START_NS 1000ull

void coll_fail(const struct coll_world *w, int member, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s, %d members, seed %llu, at %llu ns: member %d: ", w->p.what ? w->p.what : "coll", w->p.n,
            (unsigned long long)w->p.seed, (unsigned long long)w->now, member);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    for (int i = 0; i < w->p.faults; i++) {
        const struct coll_fault *f = &w->p.fault[i];
        fprintf(stderr, "\n    fault: kind %d of member %d after %llu events, letters %d, for %llu ns", (int)f->kind,
                f->member, (unsigned long long)f->after, f->with_letters, (unsigned long long)f->duration);
    }
    fprintf(stderr, "\n");
    exit(1);
}

/* ------------------------------------------------------------------------------------------------ events */

static bool before(const struct coll_event *a, const struct coll_event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static struct coll_event *push(struct coll_world *w, uint64_t t, int kind, int to, int from)
{
    if (w->n_heap == w->cap_heap) {
        w->cap_heap = w->cap_heap ? 2 * w->cap_heap : 256;
        w->heap = realloc(w->heap, (size_t)w->cap_heap * sizeof *w->heap);
        if (!w->heap)
            abort();
    }
    struct coll_event e = {.t = t, .order = w->order++, .to = to, .from = from};
    e.kind = kind;
    int i = w->n_heap++;
    for (; i && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
    return &w->heap[i];
}

static struct coll_event pop(struct coll_world *w)
{
    struct coll_event top = w->heap[0], last = w->heap[--w->n_heap];
    int i = 0;
    for (int c; (c = 2 * i + 1) < w->n_heap; i = c) {
        if (c + 1 < w->n_heap && before(&w->heap[c + 1], &w->heap[c]))
            c++;
        if (!before(&w->heap[c], &last))
            break;
        w->heap[i] = w->heap[c];
    }
    if (w->n_heap)
        w->heap[i] = last;
    return top;
}

static uint64_t upto(struct coll_world *w, uint64_t most)
{
    return most ? rng_below(&w->rng, most + 1) : 0;
}

static void sync_tick(struct coll_member *m)
{
    uint64_t t = engine_deadline(m->engine);
    if (t == UINT64_MAX || (m->tick_at && m->tick_at <= t))
        return;
    m->tick_at = t;
    push(m->w, t, EV_TICK, m->id, m->id);
}

/* ------------------------------------------------------------------------------------------------ a member */

static bool is_repair(const struct coll_spec *s)
{
    return s->kind == ENGINE_AGREE || s->kind == ENGINE_SHRINK;
}

/* Which of the calls has that name. */
static int call_of(const struct coll_world *w, uint64_t seq)
{
    bool repair = !engine_is_ordinary(seq);
    uint64_t number = seq / 2;
    int c = 0;
    for (; c < w->p.calls; c++)
        if (is_repair(&w->p.call[c]) == repair && --number == 0)
            break;
    return c;
}

static void look_at(struct coll_member *m, int call)
{
    m->current = call;
    m->b = &m->buffers[call];
}

static bool on_send(void *user, int to, uint64_t seq, const void *head, size_t head_len, const void *data, size_t len)
{
    struct coll_member *m = user;
    struct coll_world *w = m->w;
    m->messages++;
    w->stats.messages++;
    w->stats.bytes += head_len + len;
    if (head_len + len > w->stats.longest)
        w->stats.longest = head_len + len;
    if (to == m->id || to < 0 || to >= w->p.n)
        coll_fail(w, m->id, "sends to %d", to);
    uint64_t at = w->now + w->p.delay_ns + upto(w, w->p.jitter_ns);
    struct coll_event *e = push(w, at, EV_MESSAGE, to, m->id);
    e->len = head_len + len;
    e->data = malloc(e->len);
    if (!e->data)
        abort();
    memcpy(e->data, head, head_len);
    bool async = len && seq && w->p.call[call_of(w, seq)].async;
    if (len)
        memcpy(e->data + head_len, data, len);
    if (async) { /* as if it were read from memory while it travels: it must not change before */
        uint64_t *last = &m->sent_at[to % COLL_LANES]; /* in the order of sending */
        uint64_t heard = at + w->p.delay_ns + w->p.ack_ns;
        *last = heard > *last ? heard : *last + 1;
        struct coll_event *sent = push(w, *last, EV_SENT, m->id, to);
        sent->value = seq;
        sent->source = data;
        sent->len = len;
        sent->data = malloc(len);
        if (!sent->data)
            abort();
        memcpy(sent->data, data, len);
    }
    return !async;
}

static void one_less(struct coll_world *w)
{
    if (!--w->left)
        w->end_at = w->now + 5 * SEC;
}

static void advance(struct coll_member *m)
{
    m->call++;
    if (m->call == m->w->p.calls && !m->dead)
        one_less(m->w);
}

static void next_call(struct coll_world *w, struct coll_member *m);

static void start_call(struct coll_world *w, struct coll_member *m, const struct engine_call *call)
{
    struct coll_outcome *o = &m->outcome[m->begun - 1];
    uint64_t seq;
    enum engine_status status = engine_start(m->engine, call, w->now, &seq);
    if (status == ENGINE_REVOKED) {
        o->done = true;
        o->status = status;
        advance(m);
        next_call(w, m);
    } else if (status != ENGINE_OK) {
        coll_fail(w, m->id, "call %d was refused: %d", m->begun - 1, (int)status);
    }
}

static void look_later(struct coll_world *w, struct coll_member *m)
{
    push(w, w->now + 1 + upto(w, 500), EV_LOOK, m->id, m->id);
}

static void settle(struct coll_world *w, struct coll_member *m)
{
    if (!m->leaving && !m->outcast)
        engine_settle(m->engine, w->now);
    m->leaving = !m->outcast;
}

static void next_call(struct coll_world *w, struct coll_member *m)
{
    if (m->call == w->p.calls && w->p.leave)
        settle(w, m);
    int under_way = m->begun - m->call;
    bool waits = m->waits && !m->outcome[m->waits - 1].done;
    if (m->begun == w->p.calls || m->leaving || waits || under_way >= (w->p.ahead ? COLL_AHEAD : 1))
        return;
    struct engine_call call;
    int c = m->begun++;
    look_at(m, c);
    coll_prepare(m, &w->p.call[c], &call);
    if (!m->dead)
        w->awaited[c]--;
    m->outcome[c].begun = true;
    if (w->p.ahead)
        push(w, w->now + upto(w, 4000), EV_CALL, m->id, m->id);
    m->posted = w->board && rng_below(&w->rng, 16) && engine_post(m->engine, &call);
    if (m->posted)
        m->waits = c + 1;
    if (m->posted)
        look_later(w, m);
    else
        start_call(w, m, &call);
}

static void on_done(void *user, uint64_t seq, const struct engine_result *r)
{
    struct coll_member *m = user;
    int call = call_of(m->w, seq);
    struct coll_outcome *o = &m->outcome[call];
    if (m->outcast) { /* what it believes counts no more */
        advance(m);
        push(m->w, m->w->now, EV_CALL, m->id, m->id);
        return;
    }
    if (call >= m->begun || o->done)
        coll_fail(m->w, m->id, "completes what it has not begun");
    *o = (struct coll_outcome){true, true, r->status, r->value,
                               r->members ? roster_ref((struct roster *)r->members) : NULL};
    look_at(m, call);
    coll_check_done(m, call, r);
    advance(m);
    m->w->stats.end_ns = m->w->now - START_NS;
    push(m->w, m->w->now, EV_CALL, m->id, m->id);
}

/* Each look is an event, so that everything can happen between two; now and then it has waited long enough. */
static void look(struct coll_world *w, struct coll_member *m)
{
    struct engine_result result;
    enum engine_post state =
        rng_below(&w->rng, 64) ? engine_look(m->engine, &result) : engine_leave(m->engine, &result);
    if (state == ENGINE_POST_WAITS || state == ENGINE_POST_GOES_ON) {
        look_later(w, m);
        return;
    }
    m->posted = false;
    if (state == ENGINE_POST_DONE) {
        w->stats.boarded++;
        on_done(m, engine_posted(m->engine), &result);
    } else {
        w->stats.left++;
        start_call(w, m, engine_left(m->engine));
    }
}

/* ------------------------------------------------------------------------------------------------ failures */

static void spread_view(struct coll_world *w)
{
    if (w->views == w->cap_views) {
        w->cap_views = w->cap_views ? 2 * w->cap_views : 8;
        w->view = realloc(w->view, (size_t)w->cap_views * sizeof(struct roster *));
    }
    struct roster *r = w->view ? roster_room(w->p.n) : NULL;
    if (!r)
        abort();
    for (int i = 0; i < w->p.n; i++)
        if (!w->member[i].dead && !w->member[i].left)
            bitset_add(roster_room_bits(r), i);
    roster_fill(r, w->p.n, (uint64_t)w->views + 1);
    w->view[w->views++] = r;
}

static void tell_view(struct coll_world *w)
{
    spread_view(w);
    for (int i = 0; i < w->p.n; i++)
        if (!w->member[i].dead && !w->member[i].left)
            push(w, w->now + w->p.detect_ns + upto(w, w->p.spread_ns), EV_VIEW, i, -1)->value = (uint64_t)w->views - 1;
}

/* Everything from (and to) it that is on its way is lost; both sides of a broken connection learn that. */
static void lose_letters(struct coll_world *w, int member, bool both)
{
    for (int i = 0; i < w->n_heap; i++) {
        struct coll_event *e = &w->heap[i];
        if (e->from != member && !(both && e->to == member))
            continue;
        e->unheard |= both && e->kind == EV_SENT;
        if (e->kind != EV_MESSAGE && e->kind != EV_PIECE)
            continue;
        e->kind = EV_LOST; /* delivered to the sender instead */
        int sender = e->from;
        e->from = e->to;
        e->to = sender;
    }
}

static void no_more_awaited(struct coll_world *w, const struct coll_member *m)
{
    for (int c = 0; c < w->p.calls; c++)
        w->awaited[c] -= !m->outcome[c].begun;
}

static void fault(struct coll_world *w, const struct coll_fault *f)
{
    struct coll_member *m = &w->member[f->member];
    if (m->dead || m->left)
        return;
    if (f->kind == COLL_DIES || f->kind == COLL_OUTCAST)
        no_more_awaited(w, m);
    if ((f->kind == COLL_DIES || f->kind == COLL_OUTCAST) && m->call < w->p.calls)
        one_less(w);
    if (f->kind == COLL_DIES) {
        m->dead = true;
        if (f->with_letters)
            lose_letters(w, f->member, false); // NOLINT(clang-analyzer-unix.Malloc): it may abort,
        tell_view(w); // NOLINT(clang-analyzer-unix.Malloc): and this, with the members in memory
    } else if (f->kind == COLL_OUTCAST) {
        m->dead = m->outcast = true;
        m->frozen_until = w->now + f->duration;
        tell_view(w);
    } else if (f->kind == COLL_FREEZES) {
        m->frozen_until = w->now + f->duration;
    } else if (f->kind == COLL_LOSES) {
        lose_letters(w, f->member, true);
    } else if (f->kind == COLL_PARTS) {
        if (!m->posted)
            settle(w, m);
        sync_tick(m);
    } else {
        engine_revoke(m->engine, w->now);
        sync_tick(m);
    }
}

/* What it has sent goes on, but a view may come first. */
static void leave(struct coll_world *w, struct coll_member *m)
{
    int others = 0;
    for (int i = 0; i < w->p.n; i++)
        others += i != m->id && !w->member[i].dead && !w->member[i].left;
    m->leaving = false;
    m->left = true;
    w->stats.left_group++;
    no_more_awaited(w, m);
    if (m->call < w->p.calls)
        one_less(w);
    if (others)
        tell_view(w);
}

static void see_views(struct coll_world *w, struct coll_member *m, int view)
{
    while (m->view < view) /* in order, none left out */
        if (!engine_view(m->engine, w->view[++m->view], w->now))
            abort();
}

enum { PIECE = 24, PIECES = 3 };

static size_t piece_of(size_t total)
{
    size_t third = (total / PIECES + ENGINE_PIECE_UNIT) / ENGINE_PIECE_UNIT * ENGINE_PIECE_UNIT;
    return third > PIECE ? third : PIECE;
}

/* The next piece of a message; what comes after it comes later. False: it is not taken so. */
static bool place(struct coll_world *w, struct coll_member *m, struct coll_event *e)
{
    size_t total = e->len - ENGINE_HEAD, at = e->value, most = piece_of(total),
           len = total - at < most ? total - at : most;
    if (!engine_place(m->engine, e->from, e->data, total, at, e->data + ENGINE_HEAD + at, len, w->now))
        return false;
    w->stats.placed++;
    if (at + len == total)
        return true;
    struct coll_event *next = push(w, w->now + 1 + upto(w, 300), EV_PIECE, e->to, e->from);
    next->len = e->len;
    next->value = at + len;
    next->data = e->data;
    e->data = NULL;
    return true;
}

static void receive(struct coll_world *w, struct coll_member *m, struct coll_event *e)
{
    bool pieces = e->len > ENGINE_HEAD + PIECE && rng_below(&w->rng, 2);
    if (!pieces || !place(w, m, e))
        engine_receive(m->engine, e->from, e->data, e->len, w->now);
}

static void put_off(struct coll_world *w, struct coll_event *e, uint64_t until)
{
    struct coll_event *later = push(w, until, (int)e->kind, e->to, e->from);
    later->len = e->len;
    later->value = e->value;
    later->data = e->data;
    later->source = e->source;
    later->unheard = e->unheard;
    e->data = NULL;
}

static void sent(struct coll_world *w, struct coll_member *m, const struct coll_event *e)
{
    if (memcmp(e->source, e->data, e->len) != 0)
        coll_fail(w, m->id, "writes to what is being sent");
    engine_sent(m->engine, e->from, e->value, w->now);
}

/* What went with a broken connection goes again, and the receiver says that it has it, once it calls: those that are
 * through compute. Nobody waits for one that has left, once the view says so, which is told at once. */
static bool is_unheard(const struct coll_world *w, const struct coll_event *e)
{
    const struct coll_member *to = &w->member[e->from];
    return e->unheard && !to->dead && !to->left && to->call == w->p.calls;
}

static void sends_are_over(struct coll_member *m, uint64_t seq)
{
    struct coll_world *w = m->w;
    for (int i = 0; i < w->n_heap; i++) {
        struct coll_event *e = &w->heap[i];
        if (e->kind != EV_SENT || e->to != m->id || e->value != seq)
            continue;
        struct coll_event now = *e;
        e->kind = EV_NOTHING;
        e->data = NULL;
        w->stats.kept++;
        sent(w, m, &now);
        free(now.data);
        i = -1; /* the call may be over, and others begun */
    }
}

/* It is copied. */
static void on_keep(void *user, uint64_t seq)
{
    sends_are_over(user, seq);
}

/* What is under way does not come, or only in part. */
static void on_useless(void *user, uint64_t seq)
{
    struct coll_member *m = user;
    struct message_head h;
    for (int i = 0; i < m->w->n_heap; i++) {
        struct coll_event *e = &m->w->heap[i];
        if ((e->kind == EV_MESSAGE || e->kind == EV_PIECE) && e->from == m->id &&
            message_head_read(e->data, e->len, &h) && h.kind == MESSAGE_DATA && h.seq == seq)
            e->kind = EV_NOTHING;
    }
    sends_are_over(m, seq);
}

/* So it must have. */
static void on_arrived(void *user, uint64_t seq)
{
    struct coll_member *m = user;
    const struct coll_world *w = m->w;
    struct message_head h;
    for (int i = 0; i < w->n_heap; i++) {
        const struct coll_event *e = &w->heap[i];
        const struct coll_member *to = &w->member[e->to];
        if ((e->kind != EV_MESSAGE && e->kind != EV_PIECE) || e->from != m->id || to->dead || to->left)
            continue;
        if (message_head_read(e->data, e->len, &h) && h.kind == MESSAGE_DATA && h.seq == seq)
            coll_fail(w, m->id, "says that member %d has what is under way to it", to->id);
    }
    m->w->stats.arrived++;
    sends_are_over(m, seq);
}

static void dispatch(struct coll_world *w, struct coll_event *e)
{
    struct coll_member *m = &w->member[e->to];
    if ((m->dead && !m->outcast) || m->left)
        return;
    if (w->now < m->frozen_until) {
        put_off(w, e, m->frozen_until);
        return;
    }
    switch (e->kind) {
    case EV_MESSAGE:
        receive(w, m, e);
        break;
    case EV_PIECE:
        place(w, m, e);
        break;
    case EV_VIEW:
        see_views(w, m, (int)e->value);
        break;
    case EV_TICK:
        m->tick_at = 0;
        engine_tick(m->engine, w->now);
        break;
    case EV_CALL:
        next_call(w, m);
        break;
    case EV_SENT:
        if (is_unheard(w, e))
            put_off(w, e, w->now + SEC / 1000);
        else
            sent(w, m, e);
        break;
    case EV_LOST:
        engine_lost(m->engine, e->from, w->now);
        break;
    case EV_LOOK:
        look(w, m);
        break;
    case EV_NOTHING:
        break;
    }
    sync_tick(m);
    if (m->leaving && !m->outcast && engine_settled(m->engine))
        leave(w, m);
}

/* ------------------------------------------------------------------------------------------------ a run */

static void kill_some(struct coll_world *w, int count)
{
    while (count > 0) {
        struct coll_member *m = &w->member[rng_below(&w->rng, (uint64_t)w->p.n)];
        count -= !m->dead;
        if (m->engine && !m->dead) {
            w->left--;
            no_more_awaited(w, m);
        }
        m->dead = true;
    }
}

static void start(struct coll_world *w)
{
    struct engine_ops ops = {
        .send = on_send, .done = on_done, .keep = on_keep, .arrived = on_arrived, .useless = on_useless};
    if (w->p.no_keep)
        ops.keep = NULL;
    if (w->p.board) {
        w->board = aligned_alloc(alignof(struct board_head), board_size(w->p.n));
        memset(w->board, 0, board_size(w->p.n));
    }
    kill_some(w, w->p.start_dead);
    spread_view(w);
    for (int c = 0; c < w->p.calls; c++)
        if (w->p.call[c].root < 0)
            w->p.call[c].root = roster_member(w->view[0], 0);
    for (int i = 0; i < w->p.n; i++) {
        struct coll_member *m = &w->member[i];
        m->w = w;
        m->id = i;
        ops.user = m;
        if (m->dead)
            continue;
        m->engine = engine_room(w->p.n);
        if (!m->engine)
            abort();
        engine_init(m->engine, 42, i, w->view[0], w->p.node, &ops);
        struct board board;
        if (w->board && (!board_attach(&board, w->board, w->p.n, 42) || !engine_board(m->engine, &board)))
            abort();
        push(w, w->now + upto(w, w->p.skew_ns), EV_CALL, i, i);
        w->left++;
        for (int c = 0; c < w->p.calls; c++)
            w->awaited[c]++;
    }
    if (w->p.unknown_dead) {
        kill_some(w, w->p.unknown_dead);
        tell_view(w);
    }
}

static void finish(struct coll_world *w)
{
    for (int i = 0; i < w->p.n; i++) {
        struct coll_member *m = &w->member[i];
        engine_destroy(m->engine);
        for (int c = 0; c < w->p.calls; c++) {
            struct coll_buffers *b = &m->buffers[c];
            roster_unref(m->outcome[c].members);
            for (int k = 0; k < 4; k++)
                free(b->lens[k]);
            free(b->in);
            free(b->out);
        }
    }
    for (int i = 0; i < w->n_heap; i++)
        free(w->heap[i].data);
    for (int i = 0; i < w->views; i++)
        roster_unref(w->view[i]);
    free(w->view);
    free(w->heap);
    free(w->member);
    free(w->board);
}

void coll_world_run(const struct coll_params *p, struct coll_stats *stats)
{
    struct coll_world w = {.p = *p, .now = START_NS, .end_at = 3600 * SEC};
    rng_seed(&w.rng, p->seed);
    w.member = calloc((size_t)p->n, sizeof *w.member);
    if (!w.member)
        abort();
    w.stats.sums = stats ? stats->sums : NULL;
    start(&w);
    int due = 0;
    while (w.n_heap && w.heap[0].t < w.end_at) {
        for (int i = 0; i < p->faults; i++)
            if (p->fault[i].after == w.stats.events && due++ >= 0)
                fault(&w, &w.p.fault[i]);
        struct coll_event e = pop(&w);
        w.now = e.t > w.now ? e.t : w.now;
        w.stats.events++;
        dispatch(&w, &e);
        free(e.data); // NOLINT(clang-analyzer-unix.Malloc): pop gives each event once
    }
    if (w.left)
        for (int i = 0; i < p->n; i++)
            if (!w.member[i].dead && !w.member[i].left && w.member[i].call < p->calls)
                coll_fail(&w, i, "hangs in call %d", w.member[i].call);
    coll_check_end(&w);
    for (int i = 0; i < p->n; i++)
        if (w.member[i].messages > w.stats.most_messages)
            w.stats.most_messages = w.member[i].messages;
    if (stats)
        *stats = w.stats;
    finish(&w);
}
