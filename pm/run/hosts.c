#include "pm/run/hosts.h"

#include "pm/wire/bytes.h"
#include "pm/wire/layout.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LEN = 255, USER_MAX_LEN = 64, ZONE_MAX_LEN = 31 };

/* A part of the text that is read. */
struct piece {
    const char *at;
    size_t len;
};

/* What is being read, and where a complaint goes. */
struct reading {
    struct host_list *hosts;
    char *why;
    size_t why_size;
    int line; /* of a file; 0: no file */
};

/* What is said of a host beside its name. */
struct said {
    struct piece user;
    int slots, most; /* 0: nothing */
};

static bool complain(const struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool complain(const struct reading *r, const char *fmt, ...)
{
    va_list ap;
    int n = r->line ? snprintf(r->why, r->why_size, "line %d: ", r->line) : 0;
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < r->why_size)
        vsnprintf(r->why + n, r->why_size - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

#define SHOWN(p) ((p).len < 100 ? (int)(p).len : 100), (p).at

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

static bool valid_user(struct piece p)
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

static int find(const struct host_list *hosts, const char *name)
{
    int i = hosts->count - 1; /* repeats follow each other */
    while (i >= 0 && strcmp(hosts->names[i], name) != 0)
        i--;
    return i;
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
    if (h->count == LAYOUT_MAX_NODES) {
        free(whole);
        return complain(r, "more than %d hosts", LAYOUT_MAX_NODES);
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
static bool number_of(struct piece p, int *value)
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
static struct piece cut(struct piece *rest, char at)
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
    struct piece high_text = range, low_text = cut(&high_text, '-');
    int low, high;
    if (!number_of(low_text, &low) || !number_of(low_text.len == range.len ? low_text : high_text, &high) || high < low)
        return complain(r, "[%.*s] is no range of numbers", SHOWN(range));
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
        return valid_name(name) ? add(r, name, said) : complain(r, "\"%.*s\" is no host name", SHOWN(name));
    struct piece before = {name.at, (size_t)(open - name.at)}, behind = {open + 1, name.len - before.len - 1};
    if (behind.len == 0 || !memchr(behind.at, ']', behind.len))
        return complain(r, "%.*s: ] is missing", SHOWN(name));
    struct piece ranges = cut(&behind, ']');
    if (!all_of(before, ".-_") || name.len > NAME_MAX_LEN) /* not once for each */
        return complain(r, "\"%.*s\" is no host name", SHOWN(name));
    do {
        if (!expand_range(r, before, cut(&ranges, ','), behind, said))
            return false;
    } while (ranges.len > 0);
    return true;
}

/* ---- one host: user@name:slots ---- */

static bool said_number(const struct reading *r, const char *what, struct piece text, int *value)
{
    return (number_of(text, value) && *value >= 1 && *value <= HOSTS_SLOTS_MAX) ||
           complain(r, "%s%.*s is not a number from 1 to %d", what, SHOWN(text), HOSTS_SLOTS_MAX);
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
            return complain(r, "%.*s: ] is missing", SHOWN(*name));
        rest.at++, rest.len--;
        struct piece inner = cut(&rest, ']');
        if (memchr(inner.at, ':', inner.len)) {
            if (!valid_ipv6(inner) || (rest.len > 0 && rest.at[0] != ':'))
                return complain(r, "%.*s is no IPv6 address", SHOWN(*name));
            *name = inner;
            *any = rest.len > 0;
            if (*any)
                *slots = (struct piece){rest.at + 1, rest.len - 1};
            return true;
        }
        rest = *name;
    }
    struct piece first = cut(&rest, ':');
    *any = first.len < name->len;
    *name = first;
    *slots = rest;
    return true;
}

static bool read_host(const struct reading *r, struct piece name, struct said *said)
{
    struct piece slots, user = {name.at, 0};
    bool any;
    const char *at = memchr(name.at, '@', name.len);
    if (at) {
        user.len = (size_t)(at - name.at);
        name = (struct piece){at + 1, name.len - user.len - 1};
        if (!valid_user(user))
            return complain(r, "\"%.*s\" is no user's name", SHOWN(user));
        said->user = user;
    }
    if (!split_slots(r, &name, &slots, &any))
        return false;
    if (name.len == 0)
        return complain(r, "a host's name is empty");
    if (any && !said_number(r, "the number of slots :", slots, &said->slots))
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
        if (!read_host(&r, (struct piece){p, len}, &said))
            return false;
        p += len;
        if (*p == '\0')
            return true;
    }
}

/* ---- files ---- */

static bool next_word(const char **p, const char *end, const char *stops, struct piece *word)
{
    while (*p < end && isspace((unsigned char)**p))
        ++*p;
    word->at = *p;
    while (*p < end && !isspace((unsigned char)**p) && !strchr(stops, **p))
        ++*p;
    word->len = (size_t)(*p - word->at);
    return word->len > 0;
}

static bool is_word(struct piece p, const char *const *words)
{
    for (; *words; words++)
        if (p.len == strlen(*words) && strncasecmp(p.at, *words, p.len) == 0)
            return true;
    return false;
}

/* key=value, with space around it if somebody likes it. */
static bool read_key(const struct reading *r, const char **p, const char *end, struct piece key, struct said *said)
{
    static const char *const slots[] = {"slots", "cpus", "cpu", "count", NULL};
    static const char *const most[] = {"max_slots", "max-slots", "slots_max", NULL};
    static const char *const user[] = {"user", "username", "user_name", "user-name", NULL};
    static const char *const ignored[] = {"binding", NULL}; /* of processes to processors: MPICH */
    struct piece value;
    while (*p < end && isspace((unsigned char)**p))
        ++*p;
    if (*p == end || **p != '=')
        return complain(r,
                        "\"%.*s\" is not understood (a host's name may be followed by slots=N, max_slots=N, user=NAME)",
                        SHOWN(key));
    ++*p;
    if (!next_word(p, end, "", &value))
        return complain(r, "%.*s= is followed by nothing", SHOWN(key));
    if (is_word(key, slots))
        return said_number(r, "slots=", value, &said->slots);
    if (is_word(key, most))
        return said_number(r, "max_slots=", value, &said->most);
    if (is_word(key, user)) {
        said->user = value;
        return valid_user(value) || complain(r, "\"%.*s\" is no user's name", SHOWN(value));
    }
    return is_word(key, ignored) ||
           complain(r, "%.*s= is not understood (slots=N, max_slots=N, user=NAME are)", SHOWN(key));
}

static bool read_line(const struct reading *r, const char *p, const char *end)
{
    struct piece name, key;
    struct said said = {0};
    if (!next_word(&p, end, "", &name))
        return true;
    while (next_word(&p, end, "=", &key))
        if (!read_key(r, &p, end, key, &said))
            return false;
    if (p < end)
        return complain(r, "= without a word before it");
    if (!read_host(r, name, &said))
        return false;
    if (said.most && said.slots > said.most)
        return complain(r, "slots=%d is more than max_slots=%d", said.slots, said.most);
    return true;
}

static bool read_lines(struct reading *r, const char *text,
                       bool (*read)(const struct reading *, const char *, const char *))
{
    while (*text) {
        size_t len = strcspn(text, "\n"), used = strcspn(text, "#\n");
        r->line++;
        if (!read(r, text, text + used))
            return false;
        text += len + (text[len] == '\n');
    }
    r->line = 0;
    return r->hosts->count > 0 || complain(r, "no host is named there");
}

bool hosts_parse_file(struct host_list *hosts, const char *text, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    return read_lines(&r, text, read_line);
}

/* ---- batch systems ---- */

static bool read_sge_line(const struct reading *r, const char *p, const char *end)
{
    struct piece name, slots;
    struct said said = {0};
    if (!next_word(&p, end, "", &name))
        return true;
    if (!next_word(&p, end, "", &slots))
        return complain(r, "no number of slots");
    return said_number(r, "slots ", slots, &said.slots) && read_host(r, name, &said);
}

bool hosts_parse_sge(struct host_list *hosts, const char *text, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    return read_lines(&r, text, read_sge_line);
}

bool hosts_parse_words(struct host_list *hosts, const char *text, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    struct piece name;
    for (const char *end = text + strlen(text); next_word(&text, end, "", &name);) {
        struct said said = {.slots = 1};
        if (!read_host(&r, name, &said))
            return false;
    }
    return hosts->count > 0 || complain(&r, "no host is named there");
}

/* 4(x2),1: of two nodes 4 each, of the next 1. */
static bool read_tasks(const struct reading *r, const char *tasks, int first)
{
    struct host_list *h = r->hosts;
    struct piece rest = {tasks, strlen(tasks)};
    int node = first;
    while (rest.len > 0) {
        struct piece item = cut(&rest, ','), times_text = item, count_text = cut(&times_text, '(');
        int count, times = 1;
        if (!said_number(r, "tasks for each node: ", count_text, &count))
            return false;
        if (count_text.len < item.len &&
            (times_text.len < 3 || times_text.at[0] != 'x' || times_text.at[times_text.len - 1] != ')' ||
             !number_of((struct piece){times_text.at + 1, times_text.len - 2}, &times)))
            return complain(r, "tasks for each node: %.*s is not understood", SHOWN(item));
        for (; times > 0 && node < h->count; times--)
            h->slots[node++] = count;
    }
    h->slots_said = true;
    return true;
}

bool hosts_parse_slurm(struct host_list *hosts, const char *nodes, const char *tasks, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    int first = hosts->count;
    return hosts_parse_list(hosts, nodes, why, size) && (!tasks || read_tasks(&r, tasks, first));
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
}

void hosts_free(struct host_list *hosts)
{
    for (int i = 0; i < hosts->count; i++)
        free(hosts->names[i]);
    free(hosts->names);
    free(hosts->slots);
    free(hosts->most);
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
