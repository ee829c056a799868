/* What lets one agent come to keelrun, once: a key, and a name of it that is no secret. keelrun makes one for each
 * attempt to start a node. */
#ifndef KEEL_PM_TICKET_H
#define KEEL_PM_TICKET_H

#include "pm/wire/session.h"

#include <stdbool.h>
#include <stdint.h>

struct ticket {
    uint64_t id;
    uint8_t key[SESSION_SECRET];
};

/* Where an agent finds its job. */
struct summons {
    uint64_t job_id;
    struct ticket ticket;
    char host[64]; /* keelrun's address */
    int port, node;
    char from[64]; /* local address to connect from; "": any */
};

void ticket_make(struct ticket *t);
/* A line, with its end; the caller wipes it. */
void summons_write(const struct summons *s, char *text, size_t size);
/* The local address of a node of the loopback bed: 127.0.0.0 + node + 2, or in the network whose first two numbers
 * KEEL_BED_NET gives. */
void summons_loopback(int node, char *out, size_t size);
bool summons_read(const char *text, struct summons *s);
#endif
