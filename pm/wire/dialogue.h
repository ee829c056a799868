/* One end of what keelrun and an agent say to each other, over as many connections as it takes: a frame is numbered by
 * its place, kept until the other end has acknowledged it, and sent again over the next connection. So each frame
 * arrives once and in order, whatever breaks when. Pure: what is to be sent goes out by a function, and whoever owns
 * the connections tells when there is one.
 *
 * The ends count what they have received. MSG_ACK says so on the way, rarely, for it only frees memory; who connects
 * again and who answers say so, too, and each goes on behind what the other has. Frames of a connection itself
 * (dialogue_is_counted) are not kept. */
#ifndef KEEL_PM_DIALOGUE_H
#define KEEL_PM_DIALOGUE_H

#include "pm/wire/bytes.h"

#include <stdbool.h>

struct dialogue_frame;

struct dialogue {
    void (*send)(void *user, uint8_t type, const void *body, size_t len); /* over the present connection */
    void *user;
    /* internal, but for reading */
    bool up;                             /* there is a connection */
    uint64_t sent, acked;                /* frames of ours: given to dialogue_send; that the other end has */
    uint64_t received;                   /* frames of the other end */
    size_t unsaid_bytes;                 /* received and not acknowledged yet */
    int unsaid_frames;                   /* the same */
    size_t held;                         /* bytes of bodies that are kept */
    struct dialogue_frame *first, *last; /* sent - acked of them */
};

void dialogue_init(struct dialogue *l, void (*send)(void *user, uint8_t type, const void *body, size_t len),
                   void *user);
void dialogue_free(struct dialogue *l);
/* It is part of the dialogue, which outlives a connection. */
bool dialogue_is_counted(uint8_t type);
/* Now, or as soon as there is a connection. Frames that are not counted are sent now or not at all. */
void dialogue_send(struct dialogue *l, uint8_t type, const void *body, size_t len);
/* A frame has come over the present connection. False: it was for the link alone. */
bool dialogue_receive(struct dialogue *l, uint8_t type, const uint8_t *body, size_t len);
/* The connection is gone. */
void dialogue_down(struct dialogue *l);
/* There is a connection, at whose other end that many of our frames have arrived; the rest is sent. False: that
 * cannot be. */
bool dialogue_up(struct dialogue *l, uint64_t theirs);
#endif
