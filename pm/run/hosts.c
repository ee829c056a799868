#include "pm/run/hosts_read.h"

#include "pm/wire/bytes.h"
#include "pm/wire/layout.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 255, USER_MAX_LEN = 64, ZONE_MAX_LEN = 31 };

bool hosts_complain(const struct reading *r, const char *fmt, ...)
{
    va_list ap;
    int n = r->line ? snprintf(r->why, r->why_size, "line %d: ", r->line) : 0;
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < r->why_size)
        vsnprintf(r->why + n, r->why_size - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- names ---- */

static bool all_of(struct piece p, const char *others)
{
    for (size_t i = 0; i < p.len; i++)
        if (!isalnum((unsigned char)p.at[i]) && (!p.at[i] || !strchr(others, p.at[i])))
            return false;
    return true;
}

static bool valid_name(struct piece p)
{
    return p.len > 0 && p.len <= NAME_MAX_LEN && isalnum((unsigned char)p.at[0]) && all_of(p, ".-_");
}

bool piece_is_user(struct piece p)
{
    return p.len > 0 && p.len <= USER_MAX_LEN && p.at[0] != '-' && all_of(p, ".-_");
}

/* With an interface behind %, if it needs one. */
static bool valid_ipv6(struct piece p)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const char *percent = memchr(p.at, '%', p.len);
    struct piece number = {p.at, percent ? (size_t)(percent - p.at) : p.len}, zone = {0};
    if (percent)
        zone = (struct piece){percent + 1, p.len - number.len - 1};
    if (number.len >= sizeof text || (percent && (zone.len == 0 || zone.len > ZONE_MAX_LEN || !all_of(zone, ".-_"))))
        return false;
    memcpy(text, number.at, number.len);
    text[number.len] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

static void *grown(void *array, int count, size_t each)
{
    void *all = pm_alloc((size_t)count * each);
    if (array) {
        memcpy(all, array, (size_t)(count - 1) * each);
        free(array);
    }
    return all;
}

static unsigned sum_of(const char *name)
{
    unsigned sum = 0;
    for (; *name; name++)
        sum = sum * 31 + (unsigned char)*name;
    return sum;
}

/* Thousands of hosts, each of which is looked for among all: names of hosts begin alike, sums differ at once. */
static int find(struct host_list *hosts, const char *name)
{
    unsigned sum = sum_of(name);
    for (; hosts->summed < hosts->count; hosts->summed++) {
        hosts->sums = grown(hosts->sums, hosts->summed + 1, sizeof *hosts->sums);
        hosts->sums[hosts->summed] = sum_of(hosts->names[hosts->summed]);
    }
    int i = hosts->count - 1; /* repeats follow each other */
    while (i >= 0 && (hosts->sums[i] != sum || strcmp(hosts->names[i], name) != 0))
        i--;
    return i;
}

static bool add(const struct reading *r, struct piece name, const struct said *said)
{
    struct host_list *h = r->hosts;
    char *whole = said->user.len ? pm_printf("%.*s@%.*s", (int)said->user.len, said->user.at, (int)name.len, name.at)
                                 : pm_printf("%.*s", (int)name.len, name.at);
    int i = find(h, whole), slots = said->slots ? said->slots : 1;
    if (i >= 0) {
        free(whole);
        h->slots_said = true;
        h->slots[i] = h->slots[i] < HOSTS_SLOTS_MAX - slots ? h->slots[i] + slots : HOSTS_SLOTS_MAX;
        h->most[i] = said->most ? said->most : h->most[i];
        return true;
    }
    if (h->count == LIMIT_NODES) {
        free(whole);
        return hosts_complain(r, "more than %d hosts: a job has no more nodes", LIMIT_NODES);
    }
    h->count++;
    h->names = grown(h->names, h->count, sizeof *h->names);
    h->slots = grown(h->slots, h->count, sizeof *h->slots);
    h->most = grown(h->most, h->count, sizeof *h->most);
    h->names[h->count - 1] = whole;
    h->slots[h->count - 1] = slots;
    h->most[h->count - 1] = said->most;
    h->slots_said |= said->slots > 0;
    return true;
}

/* ---- ranges ---- */

/* Digits, as many as a range's number may have; false: none, or more. */
bool piece_number(struct piece p, int *value)
{
    *value = 0;
    if (p.len == 0 || p.len > 9)
        return false;
    for (size_t i = 0; i < p.len; i++) {
        if (!isdigit((unsigned char)p.at[i]))
            return false;
        *value = *value * 10 + (p.at[i] - '0');
    }
    return true;
}

/* The text up to a character, which is taken away with it; all of it if it is not there. */
struct piece piece_cut(struct piece *rest, char at)
{
    const char *found = memchr(rest->at, at, rest->len);
    struct piece first = {rest->at, found ? (size_t)(found - rest->at) : rest->len};
    size_t taken = first.len + (found != NULL);
    rest->at += taken;
    rest->len -= taken;
    return first;
}

static bool expand(const struct reading *r, struct piece name, const struct said *said);

/* name[low-high]rest: a name for each number, as wide as low is written. */
static bool expand_range(const struct reading *r, struct piece before, struct piece range, struct piece behind,
                         const struct said *said)
{
    struct piece high_text = range, low_text = piece_cut(&high_text, '-');
    int low, high;
    if (!piece_number(low_text, &low) || !piece_number(low_text.len == range.len ? low_text : high_text, &high) ||
        high < low)
        return hosts_complain(r, "[%.*s] is no range of numbers", SHOWN(range));
    for (int i = low; i <= high; i++) {
        char *text =
            pm_printf("%.*s%0*d%.*s", (int)before.len, before.at, (int)low_text.len, i, (int)behind.len, behind.at);
        bool good = expand(r, (struct piece){text, strlen(text)}, said);
        free(text);
        if (!good)
            return false;
    }
    return true;
}

static bool expand(const struct reading *r, struct piece name, const struct said *said)
{
    const char *open = memchr(name.at, '[', name.len);
    if (!open && valid_ipv6(name))
        return add(r, name, said);
    if (!open)
        return valid_name(name) ? add(r, name, said) : hosts_complain(r, "\"%.*s\" is no host name", SHOWN(name));
    struct piece before = {name.at, (size_t)(open - name.at)}, behind = {open + 1, name.len - before.len - 1};
    if (behind.len == 0 || !memchr(behind.at, ']', behind.len))
        return hosts_complain(r, "%.*s: ] is missing", SHOWN(name));
    struct piece ranges = piece_cut(&behind, ']');
    if (!all_of(before, ".-_") || name.len > NAME_MAX_LEN) /* not once for each */
        return hosts_complain(r, "\"%.*s\" is no host name", SHOWN(name));
    do {
        if (!expand_range(r, before, piece_cut(&ranges, ','), behind, said))
            return false;
    } while (ranges.len > 0);
    return true;
}

/* ---- one host: user@name:slots ---- */

bool hosts_said_number(const struct reading *r, const char *what, struct piece text, int *value)
{
    return (piece_number(text, value) && *value >= 1 && *value <= HOSTS_SLOTS_MAX) ||
           hosts_complain(r, "%s%.*s is not a number from 1 to %d", what, SHOWN(text), HOSTS_SLOTS_MAX);
}

/* The name, and what follows its last colon, if that is not the name's own: [fd00::2]:4, fd00::2. */
static bool split_slots(const struct reading *r, struct piece *name, struct piece *slots, bool *any)
{
    struct piece rest = *name;
    *any = false;
    if (valid_ipv6(*name))
        return true;
    if (name->len > 0 && name->at[0] == '[') {
        if (!memchr(name->at, ']', name->len))
            return hosts_complain(r, "%.*s: ] is missing", SHOWN(*name));
        rest.at++, rest.len--;
        struct piece inner = piece_cut(&rest, ']');
        if (memchr(inner.at, ':', inner.len)) {
            if (!valid_ipv6(inner) || (rest.len > 0 && rest.at[0] != ':'))
                return hosts_complain(r, "%.*s is no IPv6 address", SHOWN(*name));
            *name = inner;
            *any = rest.len > 0;
            if (*any)
                *slots = (struct piece){rest.at + 1, rest.len - 1};
            return true;
        }
        rest = *name;
    }
    struct piece first = piece_cut(&rest, ':');
    *any = first.len < name->len;
    *name = first;
    *slots = rest;
    return true;
}

bool hosts_read_host(const struct reading *r, struct piece name, struct said *said)
{
    struct piece slots, user = {name.at, 0};
    bool any;
    const char *at = memchr(name.at, '@', name.len);
    if (at) {
        user.len = (size_t)(at - name.at);
        name = (struct piece){at + 1, name.len - user.len - 1};
        if (!piece_is_user(user))
            return hosts_complain(r, "\"%.*s\" is no user's name", SHOWN(user));
        said->user = user;
    }
    if (!split_slots(r, &name, &slots, &any))
        return false;
    if (name.len == 0)
        return hosts_complain(r, "a host's name is empty");
    if (any && !hosts_said_number(r, "the number of slots :", slots, &said->slots))
        return false;
    return expand(r, name, said);
}

/* The end of what one comma ends; those within brackets do not. */
static size_t item_length(const char *p)
{
    size_t n = 0;
    for (bool inside = false; p[n] && (inside || p[n] != ','); n++)
        inside = p[n] == '[' || (inside && p[n] != ']');
    return n;
}

bool hosts_parse_list(struct host_list *hosts, const char *text, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    for (const char *p = text;; p++) {
        size_t len = item_length(p);
        struct said said = {0};
        if (!hosts_read_host(&r, (struct piece){p, len}, &said))
            return false;
        p += len;
        if (*p == '\0')
            return true;
    }
}

/* ---- lists ---- */

void hosts_drop(struct host_list *hosts, int from, int to)
{
    size_t behind = (size_t)(hosts->count - to);
    for (int i = from; i < to; i++)
        free(hosts->names[i]);
    memmove(&hosts->names[from], &hosts->names[to], behind * sizeof *hosts->names);
    memmove(&hosts->slots[from], &hosts->slots[to], behind * sizeof *hosts->slots);
    memmove(&hosts->most[from], &hosts->most[to], behind * sizeof *hosts->most);
    hosts->count -= to - from;
    hosts->summed = hosts->summed < from ? hosts->summed : from;
}

void hosts_free(struct host_list *hosts)
{
    for (int i = 0; i < hosts->count; i++)
        free(hosts->names[i]);
    free(hosts->names);
    free(hosts->slots);
    free(hosts->most);
    free(hosts->sums);
    *hosts = (struct host_list){0};
}

int hosts_slots(const struct host_list *hosts, int nodes)
{
    long long all = 0;
    for (int i = 0; i < nodes; i++)
        all += hosts->slots[i];
    return all < HOSTS_SLOTS_MAX ? (int)all : HOSTS_SLOTS_MAX;
}

int hosts_layout(const struct host_list *hosts, int nodes, int ranks, int *rank_node)
{
    int *count = pm_alloc((size_t)nodes * sizeof *count), left = ranks, used = 0, rank = 0;
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (int i = 0; i < nodes && left > 0; i++) {
            int more = hosts->slots[i], room = hosts->most[i] ? hosts->most[i] - count[i] : left;
            more = more < room ? more : room;
            more = more < left ? more : left;
            count[i] += more;
            left -= more;
            moved |= more > 0;
        }
    }
    for (int i = 0; i < nodes && left == 0 && count[i] > 0; i++, used++)
        for (int k = 0; k < count[i]; k++)
            rank_node[rank++] = i;
    free(count);
    return used;
}

const char *host_address(const char *name)
{
    const char *at = strchr(name, '@');
    return at ? at + 1 : name;
}
