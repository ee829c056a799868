/* How long who waits looks on, and whether others get the processor meanwhile. Under the client's lock. */
#ifndef KEEL_CLIENT_SPIN_H
#define KEEL_CLIENT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct client;

/* A look of one who waits: the processor is offered to others from `keep` on, and it ends at `until`; then say how. `lent`: how
 * much later others' turns may make its end, as they are not time that this process has looked. */
struct spin {
    uint64_t begun, keep, until, lent;
    bool longer;
};
struct spin spin_begin(struct client *c);
void spin_end(struct client *c, const struct spin *spin, bool came);
/* Something came, though not all that is waited for: the look begins anew. */
void spin_again(const struct client *c, struct spin *spin, uint64_t now);
/* Others had the processor from `since` on, if that is longer than offering it takes: the look ends so much later. Returns what the clock says. */
uint64_t spin_lend(const struct client *c, struct spin *spin, uint64_t since);
/* Who is waited for runs on the processor that we look on. The second of two (`moves`) goes to another one, where there is room; both give this one
 * away until that is so. */
void spin_beside(struct client *c, uint64_t now, bool moves);
#endif
