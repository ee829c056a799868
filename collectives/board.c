#include "collectives/board.h"

#include <string.h>

_Static_assert(sizeof(struct board_line) == 128, "shared between processes");

enum { CLOSING = 1, MET = 2, LEFT = 3, STATE_BITS = 2 };

#define BOARD_EMPTYING UINT64_MAX /* no group */

static struct board_line *line_of(const struct board *b, int lane, unsigned side, int member)
{
    return &b->line[((unsigned)lane * 2 + side) * (unsigned)b->members + (unsigned)member];
}

/* ---- whose it is ---- */

bool board_attach(struct board *b, void *memory, int members, uint64_t group)
{
    uint64_t owner = 0;
    *b = (struct board){.head = memory, .members = members};
    b->line = (struct board_line *)(b->head + 1);
    b->bytes = (uint8_t *)(b->line + board_lines(members));
    return atomic_compare_exchange_strong(&b->head->owner, &owner, group) || owner == group;
}

/* Emptied by who gives it back, so that all can have it at once who come. */
void board_release(struct board *b, uint64_t group)
{
    uint64_t owner = group;
    if (!atomic_compare_exchange_strong(&b->head->owner, &owner, BOARD_EMPTYING))
        return;
    for (size_t i = 0; i < board_lines(b->members); i++)
        atomic_store(&b->line[i].turn, 0);
    for (size_t i = 0; i < BOARD_LANES; i++)
        for (size_t side = 0; side < 2; side++)
            atomic_store(&b->head->verdict[i][side], 0);
    atomic_store(&b->head->owner, 0);
}

/* ---- a meeting ---- */

uint8_t *board_bytes(const struct board *b, int lane, int member, uint64_t turn, size_t len)
{
    unsigned side = board_side(turn);
    if (len <= BOARD_INLINE)
        return line_of(b, lane, side, member)->data;
    return b->bytes + (side * (size_t)b->members + (size_t)member) * BOARD_CHUNK;
}

uint32_t board_signature(const struct board *b, int lane, int member, uint64_t turn)
{
    return line_of(b, lane, board_side(turn), member)->signature;
}

void board_post(const struct board *b, const struct board_meeting *m, uint32_t signature)
{
    struct board_line *l = line_of(b, m->lane, board_side(m->turn), m->me);
    l->group = m->group;
    l->epoch = m->epoch;
    l->signature = signature;
    atomic_store_explicit(&l->processor, m->processor, memory_order_relaxed);
    atomic_store(&l->turn, m->turn);
}

static bool has_posted(const struct board *b, const struct board_meeting *m, int member)
{
    const struct board_line *l = line_of(b, m->lane, board_side(m->turn), member);
    return atomic_load(&l->turn) == m->turn && l->group == m->group && l->epoch == m->epoch;
}

/* Of a meeting that somebody has closed. If a later one was closed since, we are the last to ask: who had posted and
 * left waits for us elsewhere. So either all had posted, and the others have met, or somebody never did. */
static enum board_state verdict(const struct board *b, const struct board_meeting *m)
{
    _Atomic uint64_t *word = &b->head->verdict[m->lane][board_side(m->turn)];
    uint64_t seen = m->turn << STATE_BITS | CLOSING, all = MET;
    for (int i = 0; i < m->n && all == MET; i++)
        all = has_posted(b, m, m->other[i]) ? MET : LEFT;
    if (atomic_compare_exchange_strong(word, &seen, m->turn << STATE_BITS | all))
        seen = m->turn << STATE_BITS | all;
    if (seen >> STATE_BITS > m->turn)
        seen = m->turn << STATE_BITS | all;
    return seen == (m->turn << STATE_BITS | MET) ? BOARD_MET : BOARD_LEFT;
}

/* From here on nobody finds the turn met without the verdict. Not of a turn before the last one that was closed. */
static void begin_closing(const struct board *b, int lane, uint64_t turn)
{
    _Atomic uint64_t *word = &b->head->verdict[lane][board_side(turn)];
    uint64_t seen = atomic_load(word);
    while (seen >> STATE_BITS < turn && !atomic_compare_exchange_weak(word, &seen, turn << STATE_BITS | CLOSING))
        ;
}

enum board_state board_look(const struct board *b, struct board_meeting *m)
{
    while (m->seen < m->n && has_posted(b, m, m->other[m->seen]))
        m->seen++;
    bool closed = atomic_load(&b->head->verdict[m->lane][board_side(m->turn)]) >> STATE_BITS == m->turn;
    if (closed)
        return verdict(b, m);
    return m->seen == m->n ? BOARD_MET : BOARD_WAITS;
}

int board_beside(const struct board *b, const struct board_meeting *m, uint32_t processor)
{
    for (int i = m->seen; processor && i < m->n; i++) {
        int member = m->other[i];
        const struct board_line *now = line_of(b, m->lane, board_side(m->turn), member),
                                *last = line_of(b, m->lane, !board_side(m->turn), member);
        uint64_t turn = atomic_load_explicit(&now->turn, memory_order_relaxed);
        if (turn < atomic_load_explicit(&last->turn, memory_order_relaxed))
            now = last;
        if (turn != m->turn && atomic_load_explicit(&now->processor, memory_order_relaxed) == processor)
            return member;
    }
    return -1;
}

enum board_state board_leave(const struct board *b, const struct board_meeting *m)
{
    begin_closing(b, m->lane, m->turn);
    return verdict(b, m);
}

void board_close(const struct board *b, int lane, uint64_t turn)
{
    uint64_t closing = turn << STATE_BITS | CLOSING;
    begin_closing(b, lane, turn);
    (void)atomic_compare_exchange_strong(&b->head->verdict[lane][board_side(turn)], &closing,
                                         turn << STATE_BITS | LEFT);
}
