/* Messages between membership cores: one datagram each, little endian, at most MEMBER_DATAGRAM_MAX bytes.
 *
 *   header   type u8, flags u8, hops u8, late u8, src u32, dst u32, epoch u64, settled u64          28 bytes
 *   body     by type, see datagram_encode; a batch is n u8 and n times (node u32, seq u32, event 24)
 *   left     n u16 and n times the distance to the id before, 7 bits a byte, the lowest first, all but the last with
 *            bit 7
 *
 * epoch and settled are the sender's, in every message: who is behind notices and asks. */
#ifndef KEEL_DETECT_DATAGRAM_H
#define KEEL_DETECT_DATAGRAM_H

#include "detect/batch.h"
#include "detect/member.h"

/* A ballot is a round and the node that it belongs to. */
enum { BALLOT_BITS = 20, DATAGRAM_LEFT_MAX = 760, DATAGRAM_LEFT_BYTES = 760 };
_Static_assert(MEMBER_NODES_MAX <= 1 << BALLOT_BITS, "fits");

enum datagram_type {
    DATAGRAM_PING = 1, /* nonce; flag LONELY: "I hear too few of you" */
    /* nonce; flag TAKEN: of a report, and its sender has nothing more to do for what it said; KNOWN: of a report whose
     * deaths its receiver believes, but not to be coordinator */
    DATAGRAM_PONG,
    DATAGRAM_VOTE_ASK, /* node: can you reach it? */
    DATAGRAM_VOTE,     /* node, vote, age_us since its last sign of life */
    /* one phase of a view change on its way down the tree; flags DIRECT: answer the root,
     * CERTAIN: who is left out, but not declared dead here, is dead for certain; nonce: when it was sent */
    DATAGRAM_WAVE,
    /* on its way up; flag FULL: the whole subtree, WORKING: alive, not done yet; nonce: when what it answers was
     * sent, and for how long it was kept, added */
    DATAGRAM_ACK,
    DATAGRAM_NACK,   /* ballot: I promised a higher one */
    DATAGRAM_REPORT, /* to the coordinator: deaths seen, events to order; nonce */
    DATAGRAM_FETCH,  /* index: send me the log from there */
    DATAGRAM_LOG,    /* index, value, batch: what was committed */
    DATAGRAM_DEAD,   /* you were declared dead */
    DATAGRAM_LINK,   /* root says of its link to node: flag BROKEN or not; index: its number, value: since so many us */
    /* an unborn one, which has the log up to its epoch: have me born; nonce; value: its incarnation; root,
     * index: was and place of member_params */
    DATAGRAM_JOIN,
    DATAGRAM_TYPES
};
enum datagram_flag {
    DATAGRAM_LONELY = 1,
    DATAGRAM_TAKEN = 1,
    DATAGRAM_KNOWN = 2,
    DATAGRAM_DIRECT = 1,
    DATAGRAM_FULL = 2,
    DATAGRAM_WORKING = 4,
    DATAGRAM_CERTAIN = 8,
    DATAGRAM_BROKEN = 1
};
/* KERNEL: its host answers, or could not be asked, and it does not. */
enum vote_kind { VOTE_NONE, VOTE_REACHED, VOTE_UNREACHED, VOTE_KERNEL };
enum wave_phase { PHASE_NONE, PHASE_COLLECT, PHASE_PREPARE, PHASE_ACCEPT, PHASE_COMMIT, PHASE_SETTLE };

struct death {
    int node;
    int finder;
    enum member_evidence evidence;
    bool taken; /* not on the wire: it was reported, and the coordinator has it */
    bool told;  /* not on the wire: it was reported, and whom we take for the coordinator believes it */
};

struct datagram {
    enum datagram_type type;
    unsigned flags;
    int hops;      /* 1: came through another member */
    unsigned late; /* how late the sender was of late: patience.c */
    int src, dst;
    uint64_t epoch, settled;
    uint64_t nonce;
    int node;
    enum vote_kind vote;
    uint32_t age_us;
    enum wave_phase phase;
    int root;
    uint64_t ballot, index, value;
    uint64_t accepted_ballot; /* DATAGRAM_ACK of COLLECT: of batch and value; 0: none */
    int end;                  /* ids from src (DATAGRAM_ACK) or dst (DATAGRAM_WAVE) up to here, exclusive, are meant */
    /* DATAGRAM_WAVE: whom the tree leaves out beside those declared dead before the index, in ascending order */
    int n_left;
    const int *left;
    struct batch batch;
    int n_deaths;
    struct death deaths[MEMBER_BATCH_MAX];
};

/* Returns the length. */
size_t datagram_encode(const struct datagram *msg, uint8_t out[MEMBER_DATAGRAM_MAX]);
/* n = members of the job. False if the bytes are not a message (every field is checked). msg->left points to `left`
 * afterwards. */
bool datagram_decode(const void *data, size_t len, int n, struct datagram *msg, int left[DATAGRAM_LEFT_MAX]);
/* What a list takes in a message: at most DATAGRAM_LEFT_BYTES. */
size_t datagram_left_bytes(const int *left, int n);
#endif
