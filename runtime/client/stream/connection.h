/* Connections of this rank to agents, and the notes that these keep for it (wire/note.h). Under the client's lock. */
#ifndef KEEL_CLIENT_STREAM_CONNECTION_H
#define KEEL_CLIENT_STREAM_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net/transport.h"
#include "runtime/net/way.h"
#include "runtime/wire/note.h"

struct client;

enum { GIVEN_UP = 2 }; /* those whose taking up is waited for, and those that were given up since */

struct connection {
    struct client *client;
    int node;
    int rank;                                    /* -1: to the node's agent; else to a rank, part of a struct direct */
    struct way way;                              /* the own agent's is up, and not this module's to make; lived time
                                                  * in its look */
    uint64_t check_at;                           /* when the agent was last asked about the node */
    uint64_t notes[NOTES_MAX / 64];              /* bit set: in use */
    uint64_t given_up[GIVEN_UP][NOTES_MAX / 64]; /* of these, by what was given up: client.doubts.given_up */
};

struct connections {
    struct tp *net, *shm;
    bool bytewise; /* net's remote writes and reads may tear aligned words: a kernel copies the bytes */
    struct ways ways;
    struct connection *of; /* [members]; the own node's is the shared-memory connection */
};

void connection_init(struct client *c);
struct tp_ep *connection_up(struct client *c, int node,
                            uint64_t now); /* the connection, or NULL and it is being made */
void connection_event(struct connection *link, const struct tp_event *e, uint64_t now);
void connection_drop(struct client *c, int node);
/* What this rank says at the start of a connection, to an agent (connection.c) or to a rank (direct.c). Returns its
 * bytes. */
size_t connection_hello(const struct client *c, const struct way *w, uint64_t to_incarnation, uint8_t *out);
void connection_ask_agent(struct client *c, int node, uint64_t now);
/* An answer of the node's agent is missing: does anything move? */
void connection_look(struct client *c, int node, bool goes_elsewhere, uint64_t now);
int connection_note_take(struct connection *l); /* -1: none is free */
void connection_note_free(struct client *c, struct connection *l, int note);
/* It is given back with the others of client.doubts.given_up[which]. */
void connection_note_give_up(struct connection *l, int note, int which);
/* Those of given_up[0] are free, and the others are these now. */
void connection_notes_taken_up(struct client *c, struct connection *l);
#endif
