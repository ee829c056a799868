/* Several threads of one process: the lock, and those that need not look themselves as another one does. */
#ifndef KEEL_CLIENT_THREADS_H
#define KEEL_CLIENT_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>

struct client;
struct follower;

struct threads {
    _Atomic int lookers, wanted; /* those in client_wait that do not sleep; those that want the lock of them */
    atomic_bool several;         /* they have met at the lock */
    struct follower *followers;
};

/* Take the lock: a thread that looks for what is under way has it most of the time, and gives it to who wants it by
 * this. */
void client_lock(struct client *c);
/* Lock held. What we have looked for may be all that followers wait for. */
void threads_tell(struct threads *t);
/* Others may want to begin something. The lock is given back meanwhile. */
void threads_let_in(struct client *c);
/* Another process may need this processor. Without the lock, where there are other threads: one of ours may be the one
 * that runs then, and want to begin something. */
void threads_give_way(struct client *c);
/* For a thread that has something under way and need not look itself: another one does. True: it is done, and the
 * lock was given back. */
bool threads_follow(struct client *c, bool (*done)(void *arg), void *arg);
#endif
