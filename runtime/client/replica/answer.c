/* Answers that depend on the moment: the lowest replica of the rank that is there decides, and the others say the
 * same.
 *
 * Who decides tells all others, and who hears an answer tells all above it before it goes on. A replica hears each
 * answer from all below it, and takes that of the highest: whoever of them dies, those that are left say the same.
 *
 *   0 dies, and only 1 has heard it     1 has told 2 before it went on
 *   0 dies, and only 2 has heard it     1 decides anew, and 2 takes what 1 says
 *   1 dies                              2 has heard it from 0, or will
 *
 * Who finds that a replica below it compares (exchange.c) where it waits for an answer goes on as if that one were
 * dead: they have parted, and its own next comparison tells.
 *
 * Nobody sends again, so nobody has to look who is busy elsewhere. An answer that only its decider knows has no effect
 * outside of its set: before anything goes to another rank replicas meet. */
#include <unistd.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

struct said {
    uint64_t number;
    struct replica_answer answer;
};

static struct {
    pthread_mutex_t lock;
    uint64_t known; /* numbers of answers: decided or heard */
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The lock is held. */
static void tell_those_above(const struct replica_answer *answer)
{
    const struct said s = {++answers.known, *answer};
    keel_status status = KEEL_OK;
    for (int to = replica.set + 1; to < replica.sets; to++)
        if (!replica.gone[to])
            (void)replica_send(to, REPLICA_ANSWER, &s, sizeof s, &status);
}

static bool hear_from(int set, struct replica_answer *out)
{
    struct said got;
    do {
        if (replica.gone[set] || !replica_hear_answer(set, &got, sizeof got))
            return false;
    } while (got.number <= answers.known);
    *out = got.answer;
    return true;
}

bool replica_decides(struct replica_answer *out)
{
    bool heard = false;
    pthread_mutex_lock(&answers.lock);
    for (int from = 0; from < replica.set; from++)
        heard = hear_from(from, out) || heard;
    if (heard)
        tell_those_above(out);
    pthread_mutex_unlock(&answers.lock);
    return !heard;
}

struct replica_answer replica_tell(struct replica_answer answer)
{
    pthread_mutex_lock(&answers.lock);
    tell_those_above(&answer);
    pthread_mutex_unlock(&answers.lock);
    return answer;
}

uint64_t replica_answers(void)
{
    return answers.known;
}

void replica_answers_are(uint64_t number)
{
    answers.known = number;
}

bool replica_is_answering(void)
{
    return answers.lock.__data.__owner == gettid();
}
