/* The messages of collectives, as they travel: a head of fixed length, and what follows it - a vote or a piece of data.
 * Little endian. Nothing is trusted that was not checked: a message of wrong length or kind is no message. */
#ifndef KEEL_COLLECTIVES_MESSAGE_H
#define KEEL_COLLECTIVES_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum message_kind {
    MESSAGE_VOTE = 1, /* a step of a meeting; vote */
    MESSAGE_WANT,     /* what the sender waits for in a meeting has not come; no body */
    MESSAGE_DECIDED,  /* the meeting's result; vote */
    MESSAGE_DATA,     /* a step of a schedule; bytes */
    MESSAGE_ASK,      /* what the sender waits for in a schedule has not come; no body */
    MESSAGE_FLUSH,    /* the attempt cannot be finished: go to the meeting; no body */
    MESSAGE_REVOKED,  /* the group is revoked; tag: 1 + the member that is blamed for it, 0: none; no body */
    /* of a complete instance, for who joined after it; tag: its enum engine_status; vote, then the bytes */
    MESSAGE_RESULT,
    /* answers a WANT: everybody has returned from that call and those before it, or, if that is what it asks, the
     * sender from that call; no body */
    MESSAGE_OVER,
    MESSAGE_SKIP, /* that attempt is decided, and the instance goes on; for who joined after it; tag: the root; vote */
    MESSAGE_KINDS,
};

enum { MESSAGE_WHETHER_OVER = 0xffffffffu }; /* tag of a WANT: is the call over there? Of who leaves */

struct message_head {
    enum message_kind kind;
    uint16_t attempt;   /* 0, 1, ... of its instance; each ends with a meeting */
    uint32_t tag;       /* VOTE, WANT: step of the meeting; DATA, ASK: of the schedule */
    uint32_t signature; /* of the call's arguments */
    /* DATA: of the calls before this one, those from which not all have returned whose data are in it: at most the last
     * so many. WANT, ASK: the lower half of how many calls of the pair's other engine are complete there */
    uint32_t behind;
    uint64_t group;
    uint64_t seq;   /* instance */
    uint64_t epoch; /* of the roster that the sender's attempt or meeting goes by; DECIDED: in which it was decided */
};

/* What members bring to a meeting, and what is combined on the way. Each part takes no harm from being counted
 * twice. */
struct vote {
    uint64_t finished_min,
        finished_max;      /* epoch of the attempt whose result the member has; 0: none. Of ENGINE_DECIDE: its place */
    uint64_t returned_max; /* epoch of the attempt whose result some member has returned already; 0: none */
    uint64_t complete_min; /* all instances up to this one are complete there */
    uint64_t value;        /* of an agreement, combined by its operation */
    uint32_t signature_min, signature_max;
    uint32_t holder_min; /* the least member that has the bytes of a broadcast, or of the result that was returned */
    uint32_t trouble;    /* the worst error code of any member */
};

enum { MESSAGE_HEAD = 40, MESSAGE_VOTE_BYTES = 56 }; /* engine.h says the first, too */

void message_head_write(uint8_t *p, const struct message_head *h);
/* False if it is no message of collectives, or its length is not that of its kind. */
bool message_head_read(const void *data, size_t len, struct message_head *h);
void message_vote_write(uint8_t *p, const struct vote *v);
void message_vote_read(const uint8_t *p, struct vote *v);
#endif
