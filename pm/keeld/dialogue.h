/* The connection to keelrun: made again when it breaks, and what is done while there is none. */
#ifndef KEEL_PM_KEELD_LINK_H
#define KEEL_PM_KEELD_LINK_H

#include "pm/wire/conn.h"
#include "pm/wire/dialogue.h"

#include <jansson.h>
#include <stdbool.h>

struct keeld;

struct keeld_dialogue {
    struct pm_conn *conn;              /* to keelrun; NULL: there is none now */
    struct pm_conn *resuming;          /* one that is being made again */
    struct dialogue frames;            /* what is said over it, and over those that follow */
    bool joined;                       /* keelrun has proved itself once */
    bool gone, given_up;               /* keelrun has ended; it has been out of reach for too long for output to wait */
    int tries;                         /* to reach it at first */
    int refusals;                      /* in a row, when it was to be reached again */
    bool ended;                        /* the last connection was ended there, or a new one was refused */
    uint64_t over_ms;                  /* when MSG_OVER was said */
    uint64_t output_lost, events_lost; /* while it was given up: bytes; lines of the event log */
    struct pm_conn *helper;            /* from MSG_START on, to the agent that adds this node; NULL: there is none */
    int outside;                       /* our standard error at the start, which the stub reads; -1: none */
    uv_timer_t again, patience;
};

void keeld_dialogue_begin(struct keeld *a);
/* To keelrun, now or when it is in reach again; to nobody if it is gone. */
void keeld_dialogue_send(struct keeld *a, uint8_t type, const void *body, size_t len);
void keeld_dialogue_send_json(struct keeld *a, uint8_t type, json_t *body); /* takes body */
/* From now on it is with keelrun, there, and nothing has been said: the connection so far, to the agent that adds this
 * node, is the caller's. NULL: keelrun has ended. */
void keeld_dialogue_anew(struct keeld *a, const char *host);
/* MSG_REFUSED */
void keeld_dialogue_refused(struct keeld *a, const char *why);
/* All has been said but MSG_OVER: keelrun is waited for. */
void keeld_dialogue_over(struct keeld *a);
#endif
