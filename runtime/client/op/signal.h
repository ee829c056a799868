/* What keel/signal.h promises, on an instance. */
#ifndef KEEL_CLIENT_OP_SIGNAL_H
#define KEEL_CLIENT_OP_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;

keel_status signal_send(struct client *c, keel_segment *s, int rank, size_t word, int64_t add);
/* The word was changed: who waits there is to look. Takes the lock. */
void signal_tell(struct client *c, int rank);
keel_status signal_wait(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value, int from,
                        int64_t *got);
/* The same where a death ends no wait, as somebody else changes the word then: `as` says in which call it is, and for
 * whom. nobody: does nobody change it any more? By the arg of `as`; NULL: there is always somebody. */
struct wait;
keel_status signal_await(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value,
                         struct wait *as, bool (*nobody)(const void *arg), int64_t *got);
#endif
