/* Broken links between nodes that live, as reports: both ends, since when; the same at both ends and known to
 * everybody.
 *
 * A member judges its own links (detector.c: others reach a node, it does not). It tells the other end, around the
 * link, and some others, who pass on what is new to them; so nearly all have it after O(log n) hops, and the rest as it
 * is repeated. The other end takes it over: what goes one way only is broken at both ends. A link is whole again when
 * it has worked for a while, longer after each time it broke: one that flaps is one long report, and what is told about
 * it is bounded. Reports change no view.
 *
 *   WHOLE --- others reach it, we do not --------------------------> BROKEN   version + 1, told
 *   BROKEN -- direct signs for hold_ns, the hold doubles per break -> WHOLE    version + 1, told
 *
 * A report is one end's word, numbered by it. A link is broken while either end says so. */
#include "detect/member_internal.h"

#include <stdlib.h>

enum { TELL = 8, AGAIN = 8, HOLD_DOUBLINGS = 5 };
#define AGAIN_NS (1000ull * 1000 * 1000)

static struct link_word *find(const struct linkmap *map, int says, int about)
{
    for (int i = 0; i < map->n; i++)
        if (map->words[i].says == says && map->words[i].about == about)
            return &map->words[i];
    return NULL;
}

/* With a full table the oldest report of a whole link makes room; if all are broken, the new one is not kept. */
static struct link_word *add(struct member *m, int says, int about)
{
    struct linkmap *map = &m->linkmap;
    struct link_word *oldest = NULL;
    if (map->n < LINK_WORDS_MAX && grow((void **)&map->words, &map->cap, map->n + 1, sizeof *map->words)) {
        struct link_word *l = &map->words[map->n++];
        *l = (struct link_word){.says = says, .about = about};
        return l;
    }
    for (int i = 0; i < map->n; i++)
        if (!map->words[i].broken && map->words[i].says != m->p.self &&
            (!oldest || map->words[i].since < oldest->since))
            oldest = &map->words[i];
    if (oldest)
        *oldest = (struct link_word){.says = says, .about = about};
    return oldest;
}

static void tell(struct member *m, int to, const struct link_word *l)
{
    uint64_t age = m->t > l->since ? m->t - l->since : 0;
    struct datagram msg = {.type = DATAGRAM_LINK,
                           .node = l->about,
                           .root = l->says,
                           .flags = l->broken ? DATAGRAM_BROKEN : 0,
                           .index = l->version,
                           .value = age / 1000};
    if (is_live(m, to))
        member_post(m, to, &msg);
}

static void tell_some(struct member *m, const struct link_word *l)
{
    int start = (int)rng_below(&m->rng, (uint64_t)m->p.n), told = 0;
    for (int i = 0; i < m->p.n && told < TELL; i++) {
        int node = m->p.n <= TELL + 2 ? i : (start + i * 7919) % m->p.n;
        if (node == m->p.self || node == l->says || node == l->about || !is_live(m, node))
            continue;
        tell(m, node, l);
        told++;
    }
}

static void set_word(struct member *m, struct link_word *l, bool broken)
{
    l->broken = broken;
    l->since = m->t;
    l->version++;
    l->tells_left = AGAIN;
    l->tell_at = m->t + AGAIN_NS;
    tell(m, l->about, l);
    tell_some(m, l);
    member_note(m, MEMBER_REPORT_LINKS, -1, MEMBER_ALIVE, m->ledger.epoch, NULL);
}

/* Others reach node and we do not. */
void linkmap_broken(struct member *m, int node)
{
    struct link_word *l = find(&m->linkmap, m->p.self, node);
    if (!l)
        l = add(m, m->p.self, node);
    if (!l)
        return;
    l->works_since = 0;
    if (l->broken)
        return;
    if (l->breaks < HOLD_DOUBLINGS)
        l->breaks++;
    member_note(m, MEMBER_REPORT_LINK_BROKEN, node, MEMBER_ALIVE, m->ledger.epoch, "only others reach it");
    set_word(m, l, true);
}

/* The direct way works. */
void linkmap_works(struct member *m, int node)
{
    struct link_word *l = m->linkmap.n ? find(&m->linkmap, m->p.self, node) : NULL;
    if (!l || !l->broken || l->works_since)
        return;
    l->works_since = m->t;
}

/* It does not, for the moment. */
void linkmap_doubted(struct member *m, int node)
{
    struct link_word *l = m->linkmap.n ? find(&m->linkmap, m->p.self, node) : NULL;
    if (l)
        l->works_since = 0;
}

/* Was it broken, and is it only to be seen whether it works for long enough? */
bool linkmap_is_tried(struct member *m, int node)
{
    const struct link_word *l = m->linkmap.n ? find(&m->linkmap, m->p.self, node) : NULL;
    return l && l->broken;
}

/* What another says of a link of its own, maybe one with us. */
void linkmap_receive(struct member *m, const struct datagram *msg)
{
    int says = msg->root, about = msg->node;
    bool broken = msg->flags & DATAGRAM_BROKEN;
    if (says == m->p.self || says == about || !is_member(m, says) || !is_member(m, about))
        return;
    struct link_word *l = find(&m->linkmap, says, about);
    if (!l && broken)
        l = add(m, says, about);
    if (!l || l->version >= msg->index)
        return;
    uint64_t age = msg->value * 1000;
    bool changed = l->broken != broken;
    l->version = msg->index;
    l->broken = broken;
    l->since = age < m->t ? m->t - age : 0;
    if (changed)
        member_note(m, MEMBER_REPORT_LINKS, -1, MEMBER_ALIVE, m->ledger.epoch, NULL);
    if (about == m->p.self && changed)
        member_note(m, broken ? MEMBER_REPORT_LINK_BROKEN : MEMBER_REPORT_LINK_OK, says, MEMBER_ALIVE, m->ledger.epoch,
                    broken ? "it does not hear us" : "it hears us again");
    l->tells_left = 1; /* of 512 members, one in six times one would be left out by a single round */
    l->tell_at = m->t + AGAIN_NS;
    tell_some(m, l);
}

void linkmap_forget(struct member *m, int node)
{
    struct linkmap *map = &m->linkmap;
    bool changed = false;
    for (int i = 0; i < map->n;) {
        if (map->words[i].says == node || map->words[i].about == node) {
            changed = changed || map->words[i].broken;
            map->words[i] = map->words[--map->n];
        } else {
            i++;
        }
    }
    if (changed)
        member_note(m, MEMBER_REPORT_LINKS, -1, MEMBER_ALIVE, m->ledger.epoch, NULL);
}

static bool is_told_again(const struct member *m, const struct link_word *l)
{
    return l->tells_left > 0 || (l->broken && l->says == m->p.self);
}

static uint64_t whole_at(const struct member *m, const struct link_word *l)
{
    return l->works_since ? l->works_since + (m->p.answer_ns << (l->breaks - 1)) : NEVER;
}

void linkmap_tick(struct member *m)
{
    for (int i = 0; i < m->linkmap.n && !m->halted; i++) {
        struct link_word *l = &m->linkmap.words[i];
        bool own = l->says == m->p.self;
        if (own && l->broken && m->t >= whole_at(m, l)) {
            member_note(m, MEMBER_REPORT_LINK_OK, l->about, MEMBER_ALIVE, m->ledger.epoch, "works again");
            set_word(m, l, false);
        } else if (is_told_again(m, l) && m->t >= l->tell_at) { /* messages get lost, and some did not hear of it */
            l->tells_left -= l->tells_left > 0;
            l->tell_at = m->t + AGAIN_NS;
            if (own)
                tell(m, l->about, l);
            tell_some(m, l);
        }
    }
}

uint64_t linkmap_deadline(const struct member *m)
{
    uint64_t d = NEVER;
    for (int i = 0; i < m->linkmap.n; i++) {
        const struct link_word *l = &m->linkmap.words[i];
        if (l->says == m->p.self && l->broken && whole_at(m, l) < d)
            d = whole_at(m, l);
        if (is_told_again(m, l) && l->tell_at < d)
            d = l->tell_at;
    }
    return d;
}

/* Words of both ends are one link, broken since the earlier. */
int member_links(const struct member *m, struct member_link *out, int max)
{
    int n = 0;
    for (int i = 0; i < m->linkmap.n; i++) {
        const struct link_word *l = &m->linkmap.words[i];
        int a = l->says < l->about ? l->says : l->about, b = l->says < l->about ? l->about : l->says, k = 0;
        if (!l->broken)
            continue;
        while (k < n && (out[k].a != a || out[k].b != b))
            k++;
        if (k == max)
            continue;
        if (k == n)
            out[n++] = (struct member_link){.a = a, .b = b, .since_ns = l->since + m->blind};
        else if (l->since + m->blind < out[k].since_ns)
            out[k].since_ns = l->since + m->blind;
    }
    return n;
}
