/* Calls over a board: posted, looked at, done or left. A call that is done so has made no instance and sent nothing,
 * and nobody asks about it later: whoever could has the board, and finds there what we found. Only who joins later has
 * not, so where members may join a record is kept, as of any other call.
 *
 * Its result is over those who lived in the view in which all of them posted it: all of these had begun it, and had
 * given their bytes. All who live get it from the board, whoever dies meanwhile: lines and bytes of the dead stay. So
 * an agreement is uniform here with one meeting. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_int.h"

bool engine_board(struct engine *e, const struct board *board)
{
    struct shortcut *s = &e->shortcut;
    s->usable = false;
    if (!board)
        return true;
    if (e->n > 2 && !s->scratch && !(s->scratch = malloc(TOGETHER_SCRATCH)))
        return false;
    s->board = *board;
    s->how.scratch = s->scratch;
    s->usable = e->n <= board->members;
    return true;
}

/* Of the last call. */
static void forget(struct shortcut *s)
{
    s->active = false;
    roster_unref(s->live);
    s->live = NULL;
}

void engine_left_free(struct engine *e)
{
    free(e->shortcut.saved);
    e->shortcut.saved = NULL;
}

void engine_board_fini(struct engine *e)
{
    forget(&e->shortcut);
    engine_left_free(e);
    free(e->shortcut.scratch);
}

void engine_begin_beside(struct engine *e, int stream, uint64_t number)
{
    struct shortcut *s = &e->shortcut;
    if (s->board.head && s->left[stream] != number)
        board_close(&s->board, stream, board_turn(number, 0));
}

/* ---- posting ---- */

/* Where the members come at very different times, or one never takes this way, waiting here is in vain: after so many
 * in a row only each so many-th call is tried, the same on all members. */
enum { ROW_MAX = 4, RARELY = 64 };

/* Somebody does the call with messages. */
static bool has_letter(const struct engine *e, uint64_t seq)
{
    for (const struct letter *l = e->early; l; l = l->next)
        if (l->head.seq == seq)
            return true;
    return false;
}

static void post_chunk(struct engine *e)
{
    struct shortcut *s = &e->shortcut;
    s->meeting.turn = board_turn(s->number, s->chunk);
    s->meeting.seen = 0;
    together_give(&s->how, &s->board, s->meeting.lane, s->meeting.turn, s->chunk);
    board_post(&s->board, &s->meeting, s->signature);
}

/* What is written over before the last turn must be there if the call is left. */
static bool save_input(struct engine *e, struct shortcut *s)
{
    engine_left_free(e);
    size_t len = s->how.turns > 1 && s->call.in == s->call.out ? engine_input_len(e, &s->call) : 0;
    if (!len)
        return true;
    s->saved = malloc(len);
    if (s->saved)
        memcpy(s->saved, s->call.in, len);
    return s->saved;
}

static void begin_meeting(const struct engine *e, struct shortcut *s, int stream)
{
    struct board_meeting *m = &s->meeting;
    m->lane = stream;
    m->me = e->self;
    m->group = e->id;
    m->epoch = roster_epoch(s->live);
    m->n = 0;
    for (int other = roster_next(s->live, 0); other >= 0; other = roster_next(s->live, other + 1))
        if (other != e->self)
            m->other[m->n++] = (uint8_t)other;
}

bool engine_post(struct engine *e, const struct engine_call *call)
{
    struct shortcut *s = &e->shortcut;
    int stream = stream_of(call->kind);
    uint64_t number = e->stream[stream].started + 1;
    if (!s->usable || s->active || e->stream[stream].started != e->stream[stream].complete ||
        e->stream[stream].starved || (e->revoked && stream == STREAM_ORDINARY) || s->left[stream] == number)
        return false;
    if (s->row[stream] >= ROW_MAX && number % RARELY)
        return false;
    if (call->refuses || !engine_arguments_fit(e, call) || has_letter(e, seq_make(number, stream)))
        return false;
    s->call = *call;
    s->number = number;
    if (!together_begin(&s->how, &s->call, engine_roster(e), e->n, e->self) ||
        (stream == STREAM_ORDINARY && !save_input(e, s)))
        return false;
    if (e->keeps && stream == STREAM_ORDINARY && !engine_reserve_record(e, call->kind == ENGINE_MOVE ? call->len : 0))
        return false;
    forget(s);
    s->live = roster_ref(engine_roster(e));
    s->how.live = s->live;
    s->signature = engine_signature(e, call);
    s->chunk = 0;
    s->active = true;
    begin_meeting(e, s, stream);
    post_chunk(e);
    return true;
}

uint64_t engine_posted(const struct engine *e)
{
    return seq_make(e->shortcut.number, e->shortcut.meeting.lane);
}

unsigned engine_turns(const struct engine *e)
{
    return e->shortcut.how.turns;
}

int engine_beside(struct engine *e, uint32_t processor)
{
    struct shortcut *s = &e->shortcut;
    s->meeting.processor = processor;
    return s->active ? board_beside(&s->board, &s->meeting, processor) : -1;
}

/* ---- looking ---- */

static bool all_alike(const struct shortcut *s)
{
    const struct board_meeting *m = &s->meeting;
    for (int i = 0; i < m->n; i++)
        if (board_signature(&s->board, m->lane, m->other[i], m->turn) != s->signature)
            return false;
    return true;
}

static void done(struct engine *e, struct engine_result *result)
{
    struct shortcut *s = &e->shortcut;
    int stream = s->meeting.lane;
    e->stream[stream].started = e->stream[stream].complete = s->number;
    engine_returned_everywhere(e, stream, s->number - 1); /* only then is it posted */
    s->row[stream] = 0;
    if (e->keeps && stream == STREAM_ORDINARY) {
        uint64_t epoch = s->meeting.epoch;
        struct decision d = {.made = true,
                             .epoch = epoch,
                             .vote = {.finished_min = epoch,
                                      .finished_max = epoch,
                                      .complete_min = s->number - 1,
                                      .signature_min = s->signature,
                                      .signature_max = s->signature,
                                      .holder_min = UINT32_MAX}};
        bool bytes = result->status == ENGINE_OK && s->call.kind == ENGINE_MOVE;
        engine_keep_record(e, seq_make(s->number, stream), &d, result->status, s->call.out, bytes ? s->call.len : 0);
    }
    result->members = result->status == ENGINE_OK ? s->live : NULL;
    s->active = false;
    if (stream == STREAM_ORDINARY)
        engine_left_free(e);
}

/* The turn is met. True: it was the last. */
static bool take(struct engine *e, struct engine_result *result)
{
    struct shortcut *s = &e->shortcut;
    if (!all_alike(s)) {
        result->status = ENGINE_MISMATCH;
        return true;
    }
    together_take(&s->how, &s->board, s->meeting.lane, s->meeting.turn, s->chunk, &result->value);
    if (++s->chunk == s->how.turns)
        return true;
    post_chunk(e);
    return false;
}

static enum engine_post met(struct engine *e, struct engine_result *result)
{
    if (!take(e, result))
        return ENGINE_POST_GOES_ON;
    done(e, result);
    return ENGINE_POST_DONE;
}

static enum engine_post left(struct engine *e)
{
    struct shortcut *s = &e->shortcut;
    s->left[s->meeting.lane] = s->number;
    s->row[s->meeting.lane]++;
    s->active = false;
    if (s->saved && s->meeting.lane == STREAM_ORDINARY)
        s->call.in = s->saved;
    return ENGINE_POST_LEFT;
}

enum engine_post engine_look(struct engine *e, struct engine_result *result)
{
    struct shortcut *s = &e->shortcut;
    *result = (struct engine_result){.status = ENGINE_OK};
    switch (board_look(&s->board, &s->meeting)) {
    case BOARD_MET:
        return met(e, result);
    case BOARD_LEFT:
        return left(e);
    default:
        return ENGINE_POST_WAITS;
    }
}

enum engine_post engine_leave(struct engine *e, struct engine_result *result)
{
    struct shortcut *s = &e->shortcut;
    enum engine_post state = ENGINE_POST_GOES_ON;
    *result = (struct engine_result){.status = ENGINE_OK};
    while (state == ENGINE_POST_GOES_ON) /* a turn that was met is taken, the next one may be left */
        state = board_leave(&s->board, &s->meeting) == BOARD_MET ? met(e, result) : left(e);
    return state;
}

const struct engine_call *engine_left(const struct engine *e)
{
    return &e->shortcut.call;
}
