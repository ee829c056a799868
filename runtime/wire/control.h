/* What a rank and its agent say over the rank's control socket (SOCK_SEQPACKET): rare things.
 * One struct per packet. The rank asks, the agent answers with the same id; CONTROL_WELCOME comes unasked, once.
 *
 * A tree of processes inherits KEEL_FD, the rank is one of them: the first that calls keel_init. So nothing is ever
 * answered over KEEL_FD, where any of them could take it. Who calls keel_init sends CONTROL_ENTER there with one end of
 * a socket pair of its own, and over that the agent hands it the control socket, or says who has it (enum
 * control_entry). */
#ifndef KEEL_WIRE_CONTROL_H
#define KEEL_WIRE_CONTROL_H

#include <stdint.h>

#include "runtime/net/transport.h"

enum control_type {
    CONTROL_WELCOME = 1, /* agent: fds = view page, shm connection (TP_SHM_FDS) */
    /* rank: segment `seg` with bytes, redundancy, made by call b; uneven: parts differ; a = 0: answered when all
     * agents have it, 1: when this one has, and all know what the call before came to (intent_page.known says when all
     * have it). Answer: or a = 1: it was freed, and b: by that call (0: long ago) */
    CONTROL_SEG_CREATE,
    /* rank: map (seg, slot), a = 1: to track it (page.tracked); answer carries the memfd and the copy's bytes
     * (layout_memory_bytes) */
    CONTROL_SEG_MAP,
    /* rank: this rank needs seg no more, by call b; a: the keel_status for which it never came to be, 0: it did.
     * Answered when all agents know (a group's: at once), unless id is 0: intent_page.known says when */
    CONTROL_SEG_FREE,
    CONTROL_CHECK,   /* rank: is `node` alive? no answer */
    CONTROL_LEAVING, /* rank: keel_finalize was called; answered */
    CONTROL_ABORT,   /* rank: end the job with code a; text. no answer */
    CONTROL_DOUBT,   /* rank: it gave something up (note.h: doubted). no answer */
    CONTROL_EVENT,   /* rank: event log line: text = name, NUL, text; a = number. no answer */
    CONTROL_STATUS,  /* rank: look now whether `node` answers, and at the process of rank a if it is not -1; b: its
                          * time. The view page has what comes of it. no answer */
    /* rank: it leaves without waiting for `rank`, which is stopped, of a group (text: struct behind_told); b: its
     * time, as in CONTROL_STATUS, whose answer this has */
    CONTROL_BEHIND,
    CONTROL_HERE,    /* rank: keel_init was called and has its welcome. no answer */
    CONTROL_GAVE_UP, /* rank: and it came to nothing, which the program knows. no answer */
    /* rank: a is what the program needs (enum program_needs). Before keel_init over KEEL_FD. no answer */
    CONTROL_NEEDS,
    /* agent, unasked: the process is to end at a point of its program (client/move.h), as its rank goes to `node`;
     * who does not is ended. The rank learns of it there by intent_page.released: this wakes who sleeps on its
     * socket. no answer */
    CONTROL_RELEASE,
    /* a process, over KEEL_FD: keel_init was called; fds = one end of a socket pair. The answer, over that: b = enum
     * control_entry; fds = the control socket, or a = the process that has or had it, rank: which, or -1 */
    CONTROL_ENTER,
    /* rank: so many bytes of it have come, a of standard output and b of standard error, with all that it has written;
     * answered. begins = 1: those before are nobody's, and what comes from here on begins at the places a and b */
    CONTROL_OUTPUT,
    CONTROL_JOINS, /* rank: each of its set's processes has what the whole sets have; a: the set, b: its attempt. no
                    * answer */
};

enum control_entry {
    ENTRY_OPEN,  /* the process is the rank from now on */
    ENTRY_TAKEN, /* another process is it */
    ENTRY_LEFT,  /* another process was, and has called keel_finalize */
    ENTRY_ENDED, /* another process was, and has ended without */
};

enum program_needs {
    NEEDS_ALL = 1,    /* keel_need_all: all its processes */
    NEEDS_NONE = 2,   /* keel_survive: none; it goes on with those that are left */
    NEEDS_SETS = 4,   /* no partner can do the part of a member of a set: a set that loses one is retired */
    NEEDS_KEPT = 8,   /* none that it cannot make again from what its sets keep: one that is lost begins anew */
    NEEDS_ITS = 16,   /* it does what a set that begins anew cannot take over: one that is lost stays so */
    NEEDS_FILES = 32, /* those that this rank writes (the event's b) with those of all others that write some */
};

enum { CONTROL_TEXT_MAX = 256 };

struct control {
    uint32_t type;
    uint32_t id;
    int32_t status;
    uint32_t seg;
    union {
        int32_t slot, node, rank, uneven, begins; /* as the type says */
    };
    uint32_t redundancy;
    uint64_t bytes;
    int64_t a, b;
    char text[CONTROL_TEXT_MAX];
};

/* note.h: behind */
struct behind_told {
    uint64_t group, returned, begun;
};

struct control_welcome {
    uint32_t type; /* CONTROL_WELCOME */
    int32_t rank, size, node;
    uint32_t incarnation;
    uint32_t restarted;
    uint64_t job;
    uint8_t secret[32];
    char host[64];
    char more[TP_RAILS_MAX - 1][64]; /* on further rails; an empty one ends them */
    uint64_t instance;               /* allocations and frees of segments that were complete when this process joined */
    uint64_t collectives;            /* of all live ranks, completed likewise */
    uint32_t segments;               /* segments whose allocation is complete */
    uint32_t secure;                 /* data connections are sealed */
    char provider[8];                /* and what carries them */
    uint64_t range_base, range_bytes; /* addresses for segments, the same in all processes; bytes 0: what is usual */
};
#endif
