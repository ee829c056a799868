#include "pm/wire/dialogue.h"

#include "pm/wire/message.h"
#include "runtime/base/fault.h"

#include <stdlib.h>
#include <string.h>

enum { SAY_BYTES = 32 * 1024, SAY_FRAMES = 64, ACK_BODY = 8 };

struct dialogue_frame {
    struct dialogue_frame *next;
    size_t len;
    uint8_t type;
    uint8_t body[];
};

void dialogue_init(struct dialogue *l, void (*send)(void *user, uint8_t type, const void *body, size_t len), void *user)
{
    *l = (struct dialogue){.send = send, .user = user};
}

bool dialogue_is_counted(uint8_t type)
{
    switch (type) {
    case MSG_HELLO:
    case MSG_CONFIG:
    case MSG_START:
    case MSG_PING:
    case MSG_PONG:
    case MSG_BYE:
    case MSG_ACK:
    case MSG_RESUME:
    case MSG_RESUMED:
    case MSG_RETURN:
    case MSG_REFUSED:
        return false;
    default:
        return true;
    }
}

static void forget(struct dialogue *l, uint64_t theirs)
{
    while (l->acked < theirs) {
        struct dialogue_frame *f = l->first;
        l->first = f->next;
        l->held -= f->len;
        l->acked++;
        free(f);
    }
    if (!l->first)
        l->last = NULL;
}

static void keep(struct dialogue *l, uint8_t type, const void *body, size_t len)
{
    struct dialogue_frame *f = pm_alloc(sizeof *f + len);
    f->type = type;
    f->len = len;
    if (len)
        memcpy(f->body, body, len);
    if (l->last)
        l->last->next = f;
    else
        l->first = f;
    l->last = f;
    l->held += len;
    l->sent++;
}

void dialogue_send(struct dialogue *l, uint8_t type, const void *body, size_t len)
{
    if (dialogue_is_counted(type))
        keep(l, type, body, len);
    if (l->up)
        l->send(l->user, type, body, len);
}

static void acknowledge(struct dialogue *l)
{
    uint8_t body[ACK_BODY];
    put_u32(body, (uint32_t)l->received);
    put_u32(body + 4, (uint32_t)(l->received >> 32));
    l->unsaid_bytes = 0;
    l->unsaid_frames = 0;
    FAULT_POINT("link.acknowledging");
    dialogue_send(l, MSG_ACK, body, sizeof body);
}

bool dialogue_receive(struct dialogue *l, uint8_t type, const uint8_t *body, size_t len)
{
    if (type == MSG_ACK && len == ACK_BODY) {
        uint64_t theirs = get_u32(body) | (uint64_t)get_u32(body + 4) << 32;
        if (theirs <= l->sent)
            forget(l, theirs);
        return false;
    }
    if (!dialogue_is_counted(type))
        return true;
    l->received++;
    l->unsaid_bytes += len;
    l->unsaid_frames++;
    if (l->unsaid_bytes >= SAY_BYTES || l->unsaid_frames >= SAY_FRAMES)
        acknowledge(l);
    return true;
}

void dialogue_down(struct dialogue *l)
{
    l->up = false;
}

bool dialogue_up(struct dialogue *l, uint64_t theirs)
{
    if (theirs < l->acked || theirs > l->sent)
        return false;
    forget(l, theirs);
    l->up = true;
    l->unsaid_bytes = 0; /* said with the connection */
    l->unsaid_frames = 0;
    for (const struct dialogue_frame *f = l->first; f && l->up; f = f->next) {
        l->send(l->user, f->type, f->body, f->len);
        FAULT_POINT("link.sending_again");
    }
    return true;
}

void dialogue_free(struct dialogue *l)
{
    forget(l, l->sent);
}
