/* Between shm.c and shm_open.c. */
#ifndef KEEL_NET_SHM_INT_H
#define KEEL_NET_SHM_INT_H

#include <sys/queue.h>

#include "runtime/net/shm/ring.h"
#include "runtime/net/shm/shm.h"

enum {
    ARENA_BYTES = 2 * TP_SHM_MAX, /* messages of one poll */
};

/* Shared. */
struct rings {
    uint64_t magic, size;
    _Atomic uint32_t ended; /* by one side, for a reason of its own: the other one has nobody else to tell it */
    struct ring to_agent, to_rank;
};

/* A message that found the ring full. */
struct queued {
    STAILQ_ENTRY(queued) link;
    size_t len;
    uint8_t bytes[];
};

enum ep_state { EP_UP, EP_ENDING, EP_CLOSED };

struct shm_ep {
    struct tp_ep base;
    enum ep_state state;
    struct rings *rings;
    struct ring_tx tx;
    struct ring_rx rx;
    int own_bell, peer_bell; /* own_bell -1: the tp's */
    STAILQ_HEAD(, queued) queue;
    size_t queued_bytes;
    TAILQ_ENTRY(shm_ep) link;
};
TAILQ_HEAD(ep_list, shm_ep);

/* Ops end at once; their events wait for the next poll. An op in this list is linked through its provider words. */
struct done {
    STAILQ_ENTRY(done) link;
};
static_assert(sizeof(struct done) <= sizeof(((struct tp_op *)0)->provider), "fits the op");

struct shm_tp {
    struct tp base;
    int bell, epoll_fd;
    bool armed;
    int ending; /* eps in EP_ENDING */
    struct ep_list eps, graveyard;
    STAILQ_HEAD(, done) done;
    uint8_t *arena;
};

static inline struct shm_tp *shm_tp_of(struct tp *tp)
{
    return (struct shm_tp *)tp;
}

extern const struct tp_table tp_shm;

/* shm_open.c */
keel_status shm_open_config(const struct tp_config *config, struct tp **out);
void shm_close(struct tp *base);
void shm_ep_destroy(struct tp_ep *tp_ep);
/* Ends that were destroyed in the last batch are free now. */
void shm_bury(struct shm_tp *tp);
#endif
