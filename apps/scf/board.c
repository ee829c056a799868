#include "apps/scf/board.h"

#include <stddef.h>

enum { HOME = 0 }; /* the rank in whose part the words are */

/* A part; the tags follow it. */
struct part {
    int64_t printed;
    int64_t closed;
    uint64_t fingerprint;
    int64_t decisions[BOARD_SLOTS];
    struct record records[BOARD_SLOTS];
};

keel_status board_create(keel_redundancy redundancy, struct board *out)
{
    *out = (struct board){.size = keel_size()};
    return keel_segment_alloc(sizeof(struct part) + (size_t)out->size * sizeof(int64_t), redundancy, &out->segment);
}

/* iteration, rank and verdict in one word; 0 is no decision */
static int64_t encode(struct decision decision)
{
    return (int64_t)decision.iteration << 32 | (int64_t)decision.rank << 4 | (int64_t)decision.verdict;
}

static struct decision decode(int64_t word)
{
    return (struct decision){
        .iteration = (int)(word >> 32), .verdict = (enum verdict)(word & 15), .rank = (int)((word & 0xffffffff) >> 4)};
}

static size_t decision_offset(int iteration)
{
    return offsetof(struct part, decisions) + (size_t)(iteration % BOARD_SLOTS) * sizeof(int64_t);
}

static keel_status get_word(const struct board *board, int iteration, int64_t *word)
{
    return keel_get(board->segment, HOME, decision_offset(iteration), word, sizeof *word);
}

keel_status board_decision(const struct board *board, int iteration, struct decision *out)
{
    int64_t word;
    keel_status status = get_word(board, iteration, &word);
    if (status != KEEL_OK)
        return status;
    *out = decode(word);
    if (out->iteration != iteration)
        *out = (struct decision){.iteration = iteration};
    return KEEL_OK;
}

keel_status board_decide(const struct board *board, struct decision proposal, struct decision *out)
{
    int64_t expected, old;
    keel_status status = get_word(board, proposal.iteration, &expected);
    if (status != KEEL_OK)
        return status;
    if (decode(expected).iteration == proposal.iteration) {
        *out = decode(expected);
        return KEEL_OK;
    }
    status =
        keel_compare_swap(board->segment, HOME, decision_offset(proposal.iteration), expected, encode(proposal), &old);
    *out = old == expected ? proposal : decode(old);
    return status;
}

keel_status board_final(const struct board *board, struct decision *out)
{
    int64_t words[BOARD_SLOTS];
    keel_status status = keel_get(board->segment, HOME, offsetof(struct part, decisions), words, sizeof words);
    *out = (struct decision){0};
    for (int i = 0; i < BOARD_SLOTS && status == KEEL_OK; i++) {
        struct decision decision = decode(words[i]);
        if (decision.verdict == VERDICT_CONVERGED || decision.verdict == VERDICT_GIVEN_UP)
            *out = decision;
    }
    return status;
}

static size_t record_offset(int64_t iteration)
{
    return offsetof(struct part, records) + (size_t)(iteration % BOARD_SLOTS) * sizeof(struct record);
}

keel_status board_put_record(const struct board *board, const struct record *record)
{
    return keel_put(board->segment, keel_rank(), record_offset(record->iteration), record, sizeof *record);
}

keel_status board_get_record(const struct board *board, struct decision decision, struct record *out)
{
    return keel_get(board->segment, decision.rank, record_offset(decision.iteration), out, sizeof *out);
}

keel_status board_get_tags(const struct board *board, int64_t *tags)
{
    return keel_get(board->segment, HOME, sizeof(struct part), tags, (size_t)board->size * sizeof *tags);
}

keel_status board_put_tag(const struct board *board, int block, int64_t tag)
{
    return keel_put(board->segment, HOME, sizeof(struct part) + (size_t)block * sizeof tag, &tag, sizeof tag);
}

keel_status board_get_printed(const struct board *board, int64_t *lines)
{
    return keel_get(board->segment, HOME, offsetof(struct part, printed), lines, sizeof *lines);
}

keel_status board_put_printed(const struct board *board, int64_t lines)
{
    return keel_put(board->segment, HOME, offsetof(struct part, printed), &lines, sizeof lines);
}

keel_status board_get_closed(const struct board *board, int64_t *collectives)
{
    return keel_get(board->segment, HOME, offsetof(struct part, closed), collectives, sizeof *collectives);
}

keel_status board_put_closed(const struct board *board, int64_t collectives)
{
    return keel_put(board->segment, HOME, offsetof(struct part, closed), &collectives, sizeof collectives);
}

keel_status board_get_fingerprint(const struct board *board, uint64_t *fingerprint)
{
    return keel_get(board->segment, HOME, offsetof(struct part, fingerprint), fingerprint, sizeof *fingerprint);
}

keel_status board_put_fingerprint(const struct board *board, uint64_t fingerprint)
{
    return keel_put(board->segment, HOME, offsetof(struct part, fingerprint), &fingerprint, sizeof fingerprint);
}
