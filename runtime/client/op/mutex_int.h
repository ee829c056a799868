/* What the files of mutexes share: mutex.c has the calls and the design, mutex_word.c the words, mutex_wait.c who waits
 * and hands over, mutex_pool.c the sets and the threads of this process. */
#ifndef KEEL_CLIENT_OP_MUTEX_INT_H
#define KEEL_CLIENT_OP_MUTEX_INT_H

#include <keel/mutex.h>
#include <pthread.h>

#include "runtime/client/client.h"

#define OWNER ((int64_t)0x7fffffff)
#define TAKEN_OVER ((int64_t)1 << 31)
#define ARRIVAL ((int64_t)1 << 32)
#define ARRIVALS (~(ARRIVAL - 1))

/* Held or waited for by a thread of this process. */
struct busy {
    struct busy *next;
    int home, number;
    bool held;
};

struct keel_mutexes {
    struct client *client;
    keel_segment *segment;
    int per_rank;
    pthread_mutex_t lock;
    pthread_cond_t left;
    struct busy *busy;
};

/* mutex_pool.c: m, which is the caller's room, stands for those in a segment that is there and has room for them; the
 * second gives the room back. */
void mutexes_attach(keel_mutexes *m, struct client *c, keel_segment *segment, int per_rank);
void mutexes_detach(keel_mutexes *m);

/* mutex_word.c: offsets in the segment, in bytes */
size_t mutex_place(const keel_mutexes *m, int number);
size_t mutex_place_of_dead(const keel_mutexes *m, int number);
size_t mutex_place_of_wants(const keel_mutexes *m, int number, int rank);
int64_t mutex_owner_of(int rank, uint64_t incarnation);
int64_t mutex_myself(const struct client *c);
int mutex_rank_of(int64_t word);
/* The incarnation of the process that runs the rank; false: none does. */
bool mutex_rank_lives(const struct client *c, int rank, uint64_t *incarnation);
/* As far as the view here says. A process that is in no view here yet lives: its rank began again, and a view that says
 * so, or that it is dead, is to come. */
bool mutex_owner_lives(const struct client *c, int64_t word);
/* These block until the home has answered or is declared dead. */
keel_status mutex_load(keel_mutexes *m, int home, size_t at, int64_t *words, size_t n);
keel_status mutex_store(keel_mutexes *m, int home, size_t at, int64_t word);
/* *word: what it is then. */
keel_status mutex_arrive(keel_mutexes *m, int home, int number, int64_t *word);
/* *word: what it was seen to be, and then what it is. *done: it was so, and is `to` now. */
keel_status mutex_swap(keel_mutexes *m, int home, int number, int64_t *word, int64_t to, bool *done);

/* mutex_wait.c */
keel_status mutex_note_dead(keel_mutexes *m, int home, int number, int64_t word);
/* From the owner in *word, this process or a dead one, to who is next. *word: what it is then; if somebody else was
 * faster, what that one made of it. untold: if this process took it over from a dead one it has not told its caller. */
keel_status mutex_hand_over(keel_mutexes *m, int home, int number, int64_t *word, bool untold);
/* Until this process is the owner. *word: as it was seen last. */
keel_status mutex_wait_for(keel_mutexes *m, int home, int number, int64_t *word);

/* mutex_pool.c */
struct busy *mutex_find(const keel_mutexes *m, int home, int number); /* with m->lock; NULL: no thread here */
/* waits false: KEEL_IN_PROGRESS if another thread has it. */
keel_status mutex_turn_begin(keel_mutexes *m, int home, int number, bool waits);
void mutex_turn_end(keel_mutexes *m, int home, int number);
#endif
