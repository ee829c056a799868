#include "runtime/client/group/look.h"

void look_begin(struct look *l)
{
    *l = (struct look){.asked = -1, .stopped = -1, .next = UINT64_MAX};
}

bool look_found(const struct look *l)
{
    return l->stopped >= 0 && l->surely;
}

void look_forget(struct look *l)
{
    l->stopped = -1;
    l->surely = false;
}

void look_again(struct look *l, uint64_t now)
{
    l->stopped_since = now;
    l->surely = false;
}

static void see(struct look *l, const struct look_member *m, uint64_t timeout_ns, uint64_t now)
{
    if (l->seen || m->answered < l->asked_at)
        return;
    l->seen = true;
    if (!m->stopped) {
        if (l->stopped == l->asked)
            look_forget(l);
    } else if (l->stopped != l->asked) {
        l->stopped = l->asked;
        look_again(l, now);
    } else {
        l->surely = l->asked_at >= l->stopped_since + timeout_ns;
    }
}

/* Whom the page says to be stopped, but for the one just asked about. */
static int said_to_be(const struct look *l, int members, look_at_member *at, const void *user)
{
    for (int i = 0; i < members; i++) {
        struct look_member m = at(user, i);
        if (m.lives && m.stopped && i != l->asked)
            return i;
    }
    return -1;
}

static int next_in_turn(struct look *l, int members, look_at_member *at, const void *user)
{
    for (int i = 0; i < members; i++) {
        l->turn = (l->turn + 1) % members;
        if (at(user, l->turn).lives)
            return l->turn;
    }
    return -1;
}

int look_turn(struct look *l, int members, int waits, bool due, look_at_member *at, const void *user,
              uint64_t timeout_ns, uint64_t now)
{
    if (l->asked >= 0 && l->asked < members) {
        struct look_member m = at(user, l->asked);
        see(l, &m, timeout_ns, now);
    }
    if (l->stopped >= 0 && !at(user, l->stopped).lives)
        look_forget(l);
    if (look_found(l))
        return -1;
    bool over = l->stopped >= 0 && now >= l->stopped_since + timeout_ns;
    int member;
    if (l->stopped >= 0)
        member = due || (over && l->seen) ? l->stopped : -1;
    else if ((member = said_to_be(l, members, at, user)) < 0 && due)
        member = waits >= 0 && waits != l->asked && at(user, waits).lives ? waits : next_in_turn(l, members, at, user);
    if (member >= 0) {
        l->asked = member;
        l->asked_at = now;
        l->seen = false;
    }
    l->next = l->asked >= 0 && !l->seen ? now + LOOK_NS : l->stopped >= 0 ? l->stopped_since + timeout_ns : UINT64_MAX;
    return member;
}
