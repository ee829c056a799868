/* Ways around a broken link: by whom a message to a node goes that the direct way does not reach. Pure. */
#ifndef KEEL_DETECT_RELAYS_H
#define KEEL_DETECT_RELAYS_H

enum { RELAYS = 16 }; /* that are kept; the oldest makes room */

struct relays {
    struct relay {
        int node, via; /* node -1: free */
    } of[RELAYS];
    int next; /* to make room */
};

void relays_init(struct relays *r);
/* Messages to node go by `via` from now on. */
void relays_set(struct relays *r, int node, int via);
/* Messages to node go the direct way again. */
void relays_clear(struct relays *r, int node);
/* The node is gone: nothing goes to it or by it. */
void relays_forget(struct relays *r, int node);
/* By whom messages to node go: node itself is the direct way. */
int relays_via(const struct relays *r, int node);
#endif
