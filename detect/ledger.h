/* What this member has been told to prepare, has accepted, and has committed: the log. */
#ifndef KEEL_DETECT_LEDGER_H
#define KEEL_DETECT_LEDGER_H

#include "detect/datagram.h"

struct log_entry {
    uint64_t max_value;
    struct batch batch;
};

struct ledger {
    uint64_t epoch, settled; /* committed here; by all */
    struct log_entry **log;  /* [epoch], room for `cap` */
    uint64_t cap;
    uint64_t next_fetch; /* of what is missing: not before */
};

/* For index epoch + 1: told to prepare for it; binds nobody. */
struct proposal {
    bool open;
    struct batch batch;
    uint64_t number; /* the runtime's answer names it */
    uint64_t since;
    bool prepared; /* the runtime has answered */
    uint64_t value;
};

/* For index epoch + 1: may have been decided, so a later coordinator proposes the same. */
struct accepted {
    bool any;
    uint64_t ballot;
    struct batch batch;
    uint64_t value;
};

void ledger_free(struct ledger *l);
void ledger_behind(struct member *m, int who);
void ledger_prepare(struct member *m, const struct batch *batch);
void ledger_accept(struct member *m, uint64_t ballot, const struct batch *batch, uint64_t value);
void ledger_commit(struct member *m, const struct batch *batch, uint64_t max_value);
void ledger_settle(struct member *m, uint64_t epoch);
void ledger_send(struct member *m, int to, uint64_t from); /* the log from this epoch on, some of it */
void ledger_take(struct member *m, const struct datagram *msg);
#endif
