/* Waits of this rank that last are told to its agent (wire/wait.h), with their reason: nothing hangs silently. */
#ifndef KEEL_CLIENT_WAITS_H
#define KEEL_CLIENT_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/wait.h"

struct client;
struct op;

/* One wait of a call, the caller's: it may consist of several of client_wait's, if it keeps its note between them. */
struct wait {
    enum wait_call call;
    /* Fills in whom, and rank or node, which are WAIT_FOR_VIEW and -1 before. Called from waits_last. NULL: they
     * stay so. */
    void (*whom)(const struct client *c, const void *arg, struct wait_said *out);
    const void *arg;
    bool keeps; /* the note: waits_over says that the wait is over, not client_wait */
    /* waits.c's; 0 at first */
    uint64_t since, said_at;
    int place; /* + 1 of its note; 0: it has none */
};

/* It has waited from `since` (or, if it keeps its note, from its first such time) until now: say so if that is long. */
void waits_last(struct client *c, struct wait *w, uint64_t since, uint64_t now);
/* The same before a sleep that nothing but its end ends: it is told once it has lasted. Without the client's lock,
 * too. */
void waits_begin(struct client *c, struct wait *w, uint64_t now);
void waits_over(struct client *c, struct wait *w);
/* It was said to be over, and goes on. */
void waits_again(struct client *c, struct wait *w, uint64_t now);

/* ---- whom ---- */
/* For what the process has not. */
void waits_for_memory(const struct client *c, const void *arg, struct wait_said *out);
/* arg: an operation; a handle; a struct waits_fence; nothing: the oldest operation */
void waits_for_op(const struct client *c, const void *arg, struct wait_said *out);
void waits_for_handle(const struct client *c, const void *handle, struct wait_said *out);
struct waits_fence {
    int rank; /* -1: any */
};
void waits_for_fence(const struct client *c, const void *arg, struct wait_said *out);
void waits_for_any_op(const struct client *c, const void *arg, struct wait_said *out);
#endif
