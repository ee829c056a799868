/* Users' messages (keel/message.h) on an instance, and those between replicas of a rank, which users never see. Under
 * its lock, but for the public calls. */
#ifndef KEEL_CLIENT_STREAM_MAIL_H
#define KEEL_CLIENT_STREAM_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/base/life.h"

struct client;

/* The bytes sent to a rank, and of them received as far as it has said; received from it, and told. */
struct mail_peer {
    uint64_t sent, known, taken, told;
    uint64_t
        last; /* the piece of the stream up to which it must have all before we leave; asked: it knows that we wait */
    bool asked;
};

struct mail {
    struct letter_in *head, **tail; /* not wanted yet */
    struct letter_in *room;         /* memory for the next that comes, NULL: none; of room_len bytes */
    size_t room_len;
    bool starved;           /* one is waiting at its sender until there is memory for it here */
    struct mail_peer *peer; /* [ranks] */
    uint64_t *brought;      /* [ranks] of the program: the number of the last message that its partners have brought */
    uint64_t deaths;        /* the greatest that these have told of */
};

/* Of messages of partners, of a rank to a rank, whichever replica brings them: their numbers, from 1, each of which
 * comes once, in order; and the epoch of the last death of which the sender knew. */
struct mail_mark {
    uint64_t number, deaths;
};

bool mail_init(struct client *c);
void mail_free(struct client *c);
void mail_received(struct client *c, int from, uint32_t kind, const void *data, size_t len);
bool mail_has(uint32_t kind); /* is it a message of these? */
void mail_starved(struct client *c);
/* There is memory to keep a message of so many bytes, its tag included, which comes next. */
bool mail_room(struct client *c, size_t len);
void mail_reset(struct client *c, int rank);
/* Before this process leaves: ask for, and look for, the acknowledgements of what it has sent. */
void mail_farewell(struct client *c);
int mail_taken_over_by(const struct client *c); /* whom that waits for, or -1 */
bool mail_all_taken_over(void *client);
keel_status mail_send(struct client *c, int rank, uint32_t tag, const void *data, size_t len);
keel_status mail_receive(struct client *c, int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from);
keel_status mail_test(struct client *c, int rank, uint32_t tag, size_t *len, int *from);
/* The same two between replicas of a rank: no message of a user is taken for one, and none for a user's. They are of
 * that life: where another process has the rank by now it is dead (KEEL_ERR_RANK_DEAD), but what it had sent is there.
 * KEEL_IN_PROGRESS: one with the tag `unless`, another one than tag, has come first. */
keel_status mail_send_replica(struct client *c, struct life to, uint32_t tag, const void *data, size_t len);
keel_status mail_receive_replica(struct client *c, struct life from, uint32_t tag, uint32_t unless, void *data,
                                 size_t max, size_t *len);
/* Between partners (client/replica/acting_mail.c). No message of others is taken for one. A replica of the rank brings
 * it to that process; from: of those that are brought by any replica of a rank of the program, or of any.
 * blocks    mail_bring: until that process has it, which it takes in its calls; KEEL_ERR_RANK_DEAD: it is gone. */
keel_status mail_bring(struct client *c, int native, uint32_t tag, const struct mail_mark *mark, const void *data,
                       size_t len);
keel_status mail_receive_brought(struct client *c, int rank, uint32_t tag, void *data, size_t max, size_t *len,
                                 int *from);
keel_status mail_test_brought(struct client *c, int rank, uint32_t tag, size_t *len, int *from);
uint64_t mail_deaths(const struct client *c); /* the greatest epoch that these have told of */
/* Has one come with that tag, whose first 64 bits are at least that number? */
bool mail_has_replica(struct client *c, struct life from, uint32_t tag, uint64_t least);
#endif
