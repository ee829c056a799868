/* Answers that depend on the moment: the lowest replica of the rank that is there decides, and the others say the same.
 * Answers go along the chain of those that are there, 0 -> 1 -> 2, and are numbered: when the one behind has died, what
 * it may not have passed on is sent again to the next, who drops what it has. An answer that only its decider knows has
 * no effect outside of its set; before anything goes to another rank replicas meet. */
#include <stdlib.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

/* At most a window of mail is not taken by the next, and another by the one behind it: 1.25 MiB each, of which every
 * answer takes more than 100 bytes. */
enum { LOG = 32768 };

struct said {
    uint64_t number;
    struct replica_answer answer;
};

static struct {
    pthread_mutex_t lock;
    uint64_t known; /* numbers of answers: decided or heard, */
    uint64_t met;   /* and known to all */
    int next;       /* to whom they go; -1: nobody */
    bool has_next;
    struct said log[LOG];
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = -1};

static int next_there(void)
{
    for (int s = replica.set + 1; s < replica.sets; s++)
        if (!replica.gone[s])
            return s;
    return -1;
}

static int one_before(void)
{
    for (int s = replica.set - 1; s >= 0; s--)
        if (!replica.gone[s])
            return s;
    return -1;
}

/* From that number on. Until it has reached somebody who is there, or nobody is. */
static void pass_on(uint64_t from)
{
    keel_status status = KEEL_OK;
    for (int to = next_there(); to >= 0 && status == KEEL_OK; to = next_there()) {
        if (answers.has_next && to != answers.next && answers.met + 1 < from)
            from = answers.met + 1;
        answers.next = to;
        answers.has_next = true;
        bool good = true;
        for (uint64_t n = from; n <= answers.known && good; n++)
            good = replica_send(to, REPLICA_ANSWER, &answers.log[n % LOG], sizeof answers.log[0], &status);
        if (good)
            return;
    }
}

static void note(const struct replica_answer *answer)
{
    answers.known++;
    answers.log[answers.known % LOG] = (struct said){answers.known, *answer};
}

bool replica_decides(struct replica_answer *out)
{
    keel_status status = KEEL_OK;
    struct said got;
    for (int from = one_before(); from >= 0; from = one_before()) {
        if (!replica_hear(from, REPLICA_ANSWER, &got, sizeof got, &status)) {
            if (status != KEEL_OK) /* this process has lost the job: each call says so */
                return true;
            continue;
        }
        pthread_mutex_lock(&answers.lock);
        bool is_new = got.number == answers.known + 1;
        if (is_new) {
            note(&got.answer);
            pass_on(answers.known);
        }
        pthread_mutex_unlock(&answers.lock);
        *out = got.answer;
        if (is_new)
            return false;
    }
    return true;
}

struct replica_answer replica_tell(struct replica_answer answer)
{
    pthread_mutex_lock(&answers.lock);
    note(&answer);
    pass_on(answers.known);
    pthread_mutex_unlock(&answers.lock);
    return answer;
}

void replica_reroute(void)
{
    pthread_mutex_lock(&answers.lock);
    if (answers.has_next && answers.next != next_there())
        pass_on(answers.known + 1);
    pthread_mutex_unlock(&answers.lock);
}

void replica_answers_met(void)
{
    answers.met = answers.known;
}
