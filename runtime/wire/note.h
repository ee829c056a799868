/* What a writer may have left in some copies and not in others (guarantee G2): the notes.
 *
 * A rank names a note with everything that it sends directly to a copy of a part that has several. Each agent keeps
 * NOTES_MAX of them per rank, by the number that the rank chose; the rank uses a number again only when every live copy
 * has the bytes that it stood for, so a note is never forgotten too early, however many puts go by while one is stuck.
 * For copies on its own node, which it writes by plain stores, the rank keeps the notes itself, in a page of shared
 * memory that its agent reads after its death.
 *
 *   whole   the copy has all bytes of the patch or none of them
 *   torn    it may have a part of them. A writer lets only one copy of a patch be torn at a time: `level` copies were
 *           whole,
 *           with the new bytes, before this one was touched. So of several that may be torn those of a lower level
 *           are not */
#ifndef KEEL_WIRE_NOTE_H
#define KEEL_WIRE_NOTE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/counters.h"
#include "runtime/wire/limits.h"
#include "runtime/wire/wait.h"

/* A range of a slot's part of a segment. */
struct patch {
    uint32_t seg;
    int slot;
    uint64_t offset;
    uint64_t len; /* 0: no patch */
    bool torn;
    uint8_t level;       /* torn: below COPIES_MAX */
    uint64_t put;        /* torn: the number of the writer's put, the same at every copy */
    uint64_t generation; /* an announced one: for which the put was planned */
    uint64_t came_at;    /* when an agent noted it */
};

enum { INTENT_MAX = 64 };

/* A note for a copy on the writer's node. Written by the rank, read by its agent after the rank's death. */
struct intent {
    _Atomic uint32_t active; /* set before the first store, cleared when every live copy holds the bytes */
    uint32_t seg;
    uint32_t slot;
    uint32_t pad;
    uint64_t offset;
    uint64_t len;
};

/* Call `number` of those that allocate and free segments: all agents have the segment, or know that it was freed, or
 * came to nothing. */
#define KNOWN_MADE(number) (2 * (uint64_t)(number))
#define KNOWN_ENDED(number) (2 * (uint64_t)(number) + 1)

/* Members of a group have left (keel_finalize) and did not wait for this process, which was stopped: what they were
 * told of the group's calls it may not hear any more. Written by the agent, before a view without them. */
enum { BEHIND_MAX = 8 };
struct behind {
    _Atomic uint64_t group;
    _Atomic uint64_t returned, begun; /* ordinary calls of theirs; begun BEHIND_REVOKED: they have revoked the group */
};
#define BEHIND_REVOKED UINT64_MAX

/* intent_page.released. HELD becomes ASKED in the same moment, but for a program that leaves first. ASKED becomes NONE
 * again or one of the others, whichever is first; those stay, but ACCEPTED, which becomes OUT or ENDED. A program that
 * was told of ASKED may accept when it is NONE again: then the rank's next life begins on the same node, or where it is
 * to go. */
enum release {
    RELEASE_NONE,
    RELEASE_HELD, /* it is to be asked, and its agent finds out when it is to go: no point of its program is passed */
    RELEASE_ASKED,
    RELEASE_ACCEPTED,
    RELEASE_OUT,   /* by the rank, after ACCEPTED: nothing of its is under way, and it ends as its program likes */
    RELEASE_LEFT,  /* by the rank: its program has called keel_finalize, and it goes nowhere any more */
    RELEASE_ENDED, /* by the agent: the process is ended where it is */
};
/* intent_page.moved. COMPLETE: all that it has begun is complete in all copies. */
enum moved_word { MOVED_NOT, MOVED_COMPLETE, MOVED_IN_DOUBT };

/* intent_page.pattern: to whom a rank sends at each step. The numbers are those of topo/weigh.h, but for the last one:
 * what was declared holds no more. NONE: this process has said nothing yet. */
enum note_pattern { PATTERN_NONE, PATTERN_BESIDE, PATTERN_AROUND, PATTERN_NEXT, PATTERN_EVERYBODY, PATTERN_WITHDRAWN };

struct intent_page {
    _Atomic uint32_t open;    /* puts that are not complete: a rank that exits with some is in doubt */
    _Atomic uint32_t doubted; /* times the rank gave up what changes memory and may still come (KEEL_ERR_TIMEOUT) */
    _Atomic uint32_t unequal; /* the last of those times after which copies may differ; written before doubted */
    /* Collectives of all live ranks that this one has completed. The rank writes it and then looks at page.frozen
     * before it enters the next one, the agent writes that and then reads this, all sequentially consistent: so from
     * then on the rank completes one more at most. */
    _Atomic uint64_t collectives;
    /* Likewise of allocations and frees of segments; written when all agents know what it came to. */
    _Atomic uint64_t segments;
    struct intent entry[INTENT_MAX];
    /* Written by the rank behind each request on its control socket: an agent that is awake looks there at once. A line
     * of its own, as the agent looks at it all the time. */
    alignas(64) _Atomic uint32_t asked;
    /* Written by the agent: of what this rank has told about segments the last that all agents know, KNOWN_MADE or
     * KNOWN_ENDED. */
    alignas(64) _Atomic uint64_t known;
    /* Is the process to end, so that the rank's next life begins on another node (client/move.h)? enum release. The
     * agent asks, and takes it back, or ends the process; the rank accepts, or leaves. */
    _Atomic uint32_t released;
    /* Written by the agent before it asks: at the end of which collective (wire/leave.h), and since when. */
    _Atomic uint64_t leave_at, asked_ns;
    /* What lasts: written by the rank, read by the agent about twice a second. */
    alignas(64) struct wait_note wait[WAIT_NOTES];
    _Atomic uint32_t behinds; /* of those below so many are in use; one more than there are: some have no place */
    struct behind behind[BEHIND_MAX];
    /* Written by the rank's process when it ends by exit: 1 + its code; 0: it lives, or ended in another way. */
    _Atomic uint32_t ended;
    /* Written by the rank's process. Points of its program at which it could have ended since it was released; and the
     * last thing that it does when it ends at one: enum moved_word. */
    _Atomic uint32_t move_points, moved;
    /* Written by the rank: what it has declared (keel_pattern), bytes first; 0: nothing. */
    _Atomic uint64_t pattern_bytes;
    _Atomic uint32_t pattern; /* enum note_pattern */
    /* Written by the rank, each block by one thread at a time; read by the agent whenever somebody asks. */
    struct counter_page counters;
};
#endif
