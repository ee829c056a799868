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

/* A word that somebody may be writing, read and written by atomics: where the program runs several times side by side
 * these have one order, so all replicas of a rank read the same. 0 for 0 changes nothing. */
static keel_status word_read(const struct board *board, size_t offset, int64_t *word)
{
    return keel_compare_swap(board->segment, HOME, offset, 0, 0, word);
}

static keel_status word_write(const struct board *board, size_t offset, int64_t word)
{
    int64_t expected, old;
    keel_status status = word_read(board, offset, &old);
    do {
        expected = old;
        if (status == KEEL_OK && expected != word)
            status = keel_compare_swap(board->segment, HOME, offset, expected, word, &old);
    } while (status == KEEL_OK && old != expected);
    return status;
}

static keel_status get_word(const struct board *board, int iteration, int64_t *word)
{
    return word_read(board, decision_offset(iteration), word);
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
    keel_status status = KEEL_OK;
    *out = (struct decision){0};
    for (int i = 0; i < BOARD_SLOTS && status == KEEL_OK; i++) {
        int64_t word = 0;
        status = get_word(board, i, &word);
        struct decision decision = decode(word);
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

static size_t tag_offset(int block)
{
    return sizeof(struct part) + (size_t)block * sizeof(int64_t);
}

keel_status board_get_tag(const struct board *board, int block, int64_t *tag)
{
    return word_read(board, tag_offset(block), tag);
}

keel_status board_put_tag(const struct board *board, int block, int64_t tag)
{
    return word_write(board, tag_offset(block), tag);
}

keel_status board_get_printed(const struct board *board, int64_t *lines)
{
    return word_read(board, offsetof(struct part, printed), lines);
}

keel_status board_put_printed(const struct board *board, int64_t lines)
{
    return word_write(board, offsetof(struct part, printed), lines);
}

keel_status board_get_closed(const struct board *board, int64_t *collectives)
{
    return word_read(board, offsetof(struct part, closed), collectives);
}

keel_status board_put_closed(const struct board *board, int64_t collectives)
{
    return word_write(board, offsetof(struct part, closed), collectives);
}

keel_status board_get_fingerprint(const struct board *board, uint64_t *fingerprint)
{
    return keel_get(board->segment, HOME, offsetof(struct part, fingerprint), fingerprint, sizeof *fingerprint);
}

keel_status board_put_fingerprint(const struct board *board, uint64_t fingerprint)
{
    return keel_put(board->segment, HOME, offsetof(struct part, fingerprint), &fingerprint, sizeof fingerprint);
}
