/* --check all: what each replica has put goes to all sets. To its own as ever; to each other one, before it counts, for
 * its agent to compare it byte by byte with what lies there (op/inspect.h). Each replica tells the others in which sets
 * it has found something else, and where two vote the majority counts: what only one says was flipped on the way of its
 * question. A set that is said to be wrong inspects what it has itself, tells all, and is mended as with --check hash.
 * Each of these steps is made by all, whatever they found, so that nobody waits for one who has heard less before a
 * death. */
#include "runtime/client/client.h"
#include "runtime/client/op/inspect.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/replica/sent.h"

enum { INSPECTED = 1024 };

/* ---- the comparison ---- */

/* Of ranges of one segment and target; how many lie there otherwise. Who cannot be asked has ended, or will be found to
 * have; memory of the dead is nobody's. */
static uint64_t compare_some(const struct sent_range *range, size_t n, const uint8_t *bytes, int set)
{
    static struct inspected part[INSPECTED];
    keel_segment *s = replica_lives(range->target, set) ? replica_elsewhere(range->segment, set, range->target) : NULL;
    uint64_t wrong = 0;
    if (!s)
        return 0;
    for (size_t i = 0; i < n; i++)
        part[i] = (struct inspected){.offset = range[i].place, .len = range[i].len, .bytes = bytes + range[i].at};
    int native = replica_native(&replica.client->replicas, range->target, set);
    if (inspect_parts(replica.client, s, native, part, n) == KEEL_OK)
        for (size_t i = 0; i < n; i++)
            wrong += part[i].found != 0;
    return wrong;
}

static uint64_t compare(const struct sent *sent, const uint8_t *bytes, int set)
{
    uint64_t wrong = 0;
    for (size_t i = 0, n; i < sent->n; i += n) {
        n = sent_alike(sent, i);
        n = n < INSPECTED ? n : INSPECTED;
        wrong += compare_some(&sent->range[i], n, bytes, set);
    }
    return wrong;
}

struct vote {
    uint64_t exchange;
    uint64_t wrong[REPLICAS_MAX]; /* ranges, by set */
};

/* votes [sets]: of all that are there, one's own is filled in. */
static keel_status exchange_votes(struct vote *votes, const bool *there)
{
    keel_status status = KEEL_OK;
    votes[replica.set].exchange = replica.exchanges;
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && there[s] && !replica.gone[s])
            (void)replica_send(s, REPLICA_VOTE, &votes[replica.set], sizeof *votes, &status);
    for (int s = 0; s < replica.sets && status == KEEL_OK; s++)
        while (s != replica.set && there[s] && !replica.gone[s] && votes[s].exchange < replica.exchanges &&
               replica_hear(s, REPLICA_VOTE, &votes[s], sizeof votes[s], &status))
            ;
    return status;
}

/* More than half of those that could say so of this one's set. */
static bool is_suspect(const struct vote *votes, const bool *there)
{
    int said = 0, of = 0;
    for (int s = 0; s < replica.sets; s++) {
        bool counts = s != replica.set && there[s] && !replica.gone[s];
        of += counts;
        said += counts && votes[s].wrong[replica.set];
    }
    return 2 * said > of;
}

/* Where this replica does the part of a dead one nobody else looks. */
static bool is_wrong_for_the_dead(const struct sent *sent, const uint8_t *bytes)
{
    uint64_t wrong = 0;
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && replica_acts() >> s & 1)
            wrong += compare(sent, bytes, s);
    return wrong;
}

keel_status replica_vote(const struct sent *sent, const uint8_t *bytes, const bool *there, bool *suspect)
{
    struct vote votes[REPLICAS_MAX] = {{.exchange = 0}};
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && there[s] && !replica.gone[s])
            votes[replica.set].wrong[s] = compare(sent, bytes, s);
    keel_status status = exchange_votes(votes, there);
    *suspect = is_suspect(votes, there) || is_wrong_for_the_dead(sent, bytes);
    return status;
}

keel_status replica_share_wrong(size_t *wrong, const bool *there)
{
    struct vote votes[REPLICAS_MAX] = {{.exchange = 0}};
    votes[replica.set].wrong[replica.set] = wrong[replica.set];
    keel_status status = exchange_votes(votes, there);
    for (int s = 0; s < replica.sets; s++)
        wrong[s] = votes[s].wrong[s];
    return status;
}
