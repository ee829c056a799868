/* A process leaves the job: whom it has sent messages to has them first (mail.h). */
#include "runtime/client/client.h"
#include "runtime/client/stream/mail.h"

/* Whoever has not acknowledged all of our messages is asked to. */
static void ask_to_acknowledge(struct client *c, int r)
{
    struct mail_peer *p = &c->mail.peer[r];
    struct parcel_tag t = {.kind = PARCEL_MAIL_TAKEN, .tell = true};
    p->asked = courier_offer(c, r, &t, &p->taken, sizeof p->taken, NULL, 0);
    p->last = c->coll.stream[r].next;
}

void mail_farewell(struct client *c)
{
    for (int r = 0; r < c->size; r++)
        if (c->mail.peer[r].sent && c->coll.stream[r].head)
            ask_to_acknowledge(c, r);
}

int mail_taken_over_by(const struct client *c)
{
    for (int r = 0; r < c->size; r++)
        if (c->coll.stream[r].acked < c->mail.peer[r].last)
            return r;
    return -1;
}

bool mail_all_taken_over(void *arg)
{
    struct client *c = arg;
    for (int r = 0; r < c->size; r++) {
        if (c->mail.peer[r].last && !c->mail.peer[r].asked) /* there was no memory to */
            ask_to_acknowledge(c, r);
        /* what is sent later, when a view comes, is nothing to wait for: nobody is asked to acknowledge it */
        if (c->coll.stream[r].acked < c->mail.peer[r].last && c->coll.broken == KEEL_OK)
            return false;
    }
    return true;
}
