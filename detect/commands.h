/* Between the helper's thread and others: what they ask of it, and what it has noted for them. */
#ifndef KEEL_DETECT_COMMANDS_H
#define KEEL_DETECT_COMMANDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "detect/helper.h"

struct candidate;

struct helper_command {
    enum {
        CMD_SUBMIT,
        CMD_PREPARED,
        CMD_CHECK,
        CMD_BROKEN,
        CMD_REFUSED,
        CMD_STAKE,
        CMD_WAITS,
        CMD_MEET,
    } kind;
    int node;
    uint64_t proposal, value; /* value: of CMD_STAKE the stake, of CMD_WAITS until when */
    struct candidate *candidate;
    struct view_event event;
};

/* Any thread puts, the helper's takes all. */
struct helper_commands {
    pthread_mutex_t lock;        /* of told, too */
    struct helper_command *list; /* lock */
    int n, cap;                  /* lock */
    atomic_bool poor;            /* there was no memory for what another thread asked */
};

/* Written by the helper's thread. */
struct helper_told {
    struct member_link links[MEMBER_LINKS_MAX]; /* lock */
    int n_links;                                /* lock */
    struct helper_status status;                /* lock */
    uint64_t status_at;                         /* written last */
};
#endif
