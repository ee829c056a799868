/* A rank's places in the hall of its node (hall/hall.h). Under the client's lock. */
#ifndef KEEL_CLIENT_STREAM_HALL_H
#define KEEL_CLIENT_STREAM_HALL_H

#include "runtime/hall/hall.h"
#include "runtime/wire/wire.h"

struct client;

struct hall {
    int n, me; /* ranks; n is 0 where there is no hall */
    int rank[HALL_RANKS_MAX];
    struct ring_tx to[HALL_RANKS_MAX];
    struct ring_rx from[HALL_RANKS_MAX];
    uint8_t *boards; /* [HALL_BOARDS], board_size(n) each */
    bool blocked;    /* a ring was full */
    bool asleep;
    alignas(8) uint8_t buffer[TP_MSG_MAX];
};

/* Shared memory of hall_bytes, the owner's. Not for a process that took a dead rank's place. */
void hall_attach(struct client *c, void *memory);
/* Its place if the rank is reached through the hall, as long as this life of it lasts; else -1. */
int hall_place(const struct client *c, int rank);
/* The memory of a board for that group: one of those that are kept, or (which -1) any; all its members have to be
 * reached through the hall. NULL: there is no hall. */
void *hall_board(const struct client *c, int which, uint64_t group);
/* False: there is no room now. */
bool hall_send(struct client *c, int place, const struct wire *w, const void *head, size_t head_len, const void *data,
               size_t len);
/* Is something there? A look at memory, nothing else. */
bool hall_has(const struct client *c);
/* Take what is there. */
void hall_poll(struct client *c, uint64_t now);
/* About to sleep; false: there is something to do. Then, or when it is awake again, hall_awake. */
bool hall_sleep(struct client *c);
void hall_awake(struct client *c);
#endif
