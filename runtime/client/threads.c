#include "runtime/client/threads.h"

#include "runtime/client/client.h"

enum {
    TRIES = 16,   /* before who wants the lock sleeps */
    LETS_IN = 16, /* times that the processor is given away for who wants the lock */
    FOLLOWS = 64, /* before who follows looks whether all is well */
};

/* It waits for something that a thread that looks brings about. That one takes it off the list, and does not touch
 * it any more once it is over. */
struct follower {
    struct follower *next;
    bool (*done)(void *arg);
    void *arg;
    atomic_bool over;
};

void client_lock(struct client *c)
{
    if (pthread_mutex_trylock(&c->lock) == 0)
        return;
    atomic_store_explicit(&c->threads.several, true, memory_order_relaxed);
    atomic_fetch_add(&c->threads.wanted, 1);
    bool taken = false;
    for (int i = 0; i < TRIES && !taken; i++) {
        c->env.yield(c->env.user);
        taken = pthread_mutex_trylock(&c->lock) == 0;
    }
    if (!taken)
        pthread_mutex_lock(&c->lock);
    atomic_fetch_sub(&c->threads.wanted, 1);
}

void threads_tell(struct threads *t)
{
    for (struct follower **link = &t->followers, *f; (f = *link) != NULL;) {
        if (!f->done(f->arg)) {
            link = &f->next;
            continue;
        }
        *link = f->next;
        atomic_store_explicit(&f->over, true, memory_order_release);
    }
}

void threads_let_in(struct client *c)
{
    if (!atomic_load_explicit(&c->threads.wanted, memory_order_relaxed))
        return;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < LETS_IN && atomic_load_explicit(&c->threads.wanted, memory_order_relaxed); i++)
        c->env.yield(c->env.user);
    client_lock(c);
}

void threads_give_way(struct client *c)
{
    if (!atomic_load_explicit(&c->threads.several, memory_order_relaxed)) {
        c->env.yield(c->env.user);
        return;
    }
    pthread_mutex_unlock(&c->lock);
    c->env.yield(c->env.user);
    client_lock(c);
}

bool threads_follow(struct client *c, bool (*done)(void *arg), void *arg)
{
    struct follower f = {c->threads.followers, done, arg, false};
    if (!atomic_load_explicit(&c->threads.lookers, memory_order_relaxed))
        return false;
    c->threads.followers = &f;
    while (atomic_load_explicit(&c->threads.lookers, memory_order_relaxed) && c->fatal == KEEL_OK) {
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < FOLLOWS && !atomic_load_explicit(&f.over, memory_order_acquire) &&
                        atomic_load_explicit(&c->threads.lookers, memory_order_relaxed);
             i++)
            c->env.yield(c->env.user);
        if (atomic_load_explicit(&f.over, memory_order_acquire))
            return true;
        client_lock(c);
        if (atomic_load_explicit(&f.over, memory_order_relaxed)) {
            pthread_mutex_unlock(&c->lock);
            return true;
        }
    }
    struct follower **link = &c->threads.followers;
    while (*link != &f)
        link = &(*link)->next;
    *link = f.next;
    return false;
}
