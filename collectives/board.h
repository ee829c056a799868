/* Board: shared memory in which the members of a group that are all on one node meet without messages. Pure: a few
 * words and who may change them in which order; what is in the bytes, when to look again and when to give up are the
 * caller's.
 *
 * A meeting is named by its turn. Each member has a line of its own, in which it posts a turn, and bytes beside it. A
 * meeting is *met* when all members that live in the view that they posted it in have posted it, in that one view and
 * of that one group. A member that has waited long enough leaves: it closes the meeting, and then one word, which is
 * written once, says for all whether it was met.
 *
 *   post ──► all have posted, and the meeting is not closed ───────────────► met
 *      │                                                                      ▲
 *      └──► closed, by us or another ──► the verdict: all have posted by now ─┘
 *                                        else left: of this turn nobody gets anything here, ever
 *
 * Why all say the same: who finds it met has seen all posts, and after that no closing. Who closes later reads the
 * posts after its closing, so it sees them all, too; and of several who read them after a closing the first one's
 * verdict counts. The words are sequentially consistent. docs/models/collectives/board.pml searches all runs of this; a
 * process that dies anywhere holds up nobody.
 *
 * Turns of a lane rise. A member posts a turn only after the one before was met or has been completed otherwise by all
 * who live, so two sets of lines and bytes, for odd and even turns, are enough: what is written over has been read by
 * all.
 *
 * source    own. Sense-reversing barriers (Mellor-Crummey, Scott 1991) have the lines; closing and verdict are what
 *           a death needs. */
#ifndef KEEL_COLLECTIVES_BOARD_H
#define KEEL_COLLECTIVES_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOARD_MEMBERS_MAX = 16,
    BOARD_LANES = 2,
    BOARD_CHUNK = 32 * 1024, /* bytes of a member in a turn */
    BOARD_INLINE = 96,       /* so many lie beside the turn, where who looks for that has them at once */
    BOARD_CHUNKS_MAX = 1 << 16,
};

/* In shared memory; zero-filled memory is a board that nobody has. */
struct board_head {
    alignas(128) _Atomic uint64_t owner;                   /* the group, 0: none */
    alignas(128) _Atomic uint64_t verdict[BOARD_LANES][2]; /* the last turn that was closed, and what became of it */
};

struct board_line {
    alignas(128) _Atomic uint64_t turn;
    uint64_t group, epoch;
    uint32_t signature;         /* of what the member wants to do */
    _Atomic uint32_t processor; /* on which it ran, + 1; 0: unknown */
    uint8_t data[BOARD_INLINE];
};

/* One process's handle. */
struct board {
    struct board_head *head;
    struct board_line *line;
    uint8_t *bytes;
    int members; /* that there is room for */
};

/* What one member waits for. */
struct board_meeting {
    int lane, me;
    uint64_t turn, group, epoch;
    uint32_t processor;
    int n; /* the others that live in that view */
    uint8_t other[BOARD_MEMBERS_MAX];
    int seen; /* so many of them have posted */
};

enum board_state { BOARD_WAITS, BOARD_MET, BOARD_LEFT };

/* Turn of part `chunk` of call `number`, both small enough: below 2^46, BOARD_CHUNKS_MAX. */
static inline uint64_t board_turn(uint64_t number, unsigned chunk)
{
    return number << 16 | chunk;
}
/* Which of the two sets: one call has an odd number of chunks, or none follows. */
static inline unsigned board_side(uint64_t turn)
{
    return (unsigned)((turn >> 16) + turn) & 1;
}

/* Of memory for boards of so many members, a multiple of the alignment. */
static inline size_t board_lines(int members)
{
    return 2 * BOARD_LANES * (size_t)members;
}
static inline size_t board_size(int members)
{
    return sizeof(struct board_head) + board_lines(members) * sizeof(struct board_line) +
           2 * (size_t)members * BOARD_CHUNK;
}
/* Memory of board_size(members), aligned to 128 bytes. False: another group has it. All members of a group have to
 * use the same memory. */
bool board_attach(struct board *b, void *memory, int members, uint64_t group);
/* All members have made their last call; one of them says so, or each. */
void board_release(struct board *b, uint64_t group);

/* Where the member's bytes of that turn go, before it posts it, and are read once it is met; at most BOARD_CHUNK.
 * Lane 1: BOARD_INLINE. */
uint8_t *board_bytes(const struct board *b, int lane, int member, uint64_t turn, size_t len);
uint32_t board_signature(const struct board *b, int lane, int member, uint64_t turn);
void board_post(const struct board *b, const struct board_meeting *m, uint32_t signature);
/* Is it met? BOARD_LEFT: it will not be. */
enum board_state board_look(const struct board *b, struct board_meeting *m);
/* Of those who have not posted, the first that ran on that processor when it last posted: while we look it cannot.
 * -1: none. */
int board_beside(const struct board *b, const struct board_meeting *m, uint32_t processor);
/* Wait no longer: BOARD_MET or BOARD_LEFT. */
enum board_state board_leave(const struct board *b, const struct board_meeting *m);
/* By a member that has not posted the turn, and will not: so that nobody waits for it here. */
void board_close(const struct board *b, int lane, uint64_t turn);
#endif
