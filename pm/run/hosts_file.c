/* Hosts as files and batch systems name them. Pure. */
#include "pm/run/hosts_read.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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
        return hosts_complain(
            r, "\"%.*s\" is not understood (a host's name may be followed by slots=N, max_slots=N, user=NAME)",
            SHOWN(key));
    ++*p;
    if (!next_word(p, end, "", &value))
        return hosts_complain(r, "%.*s= is followed by nothing", SHOWN(key));
    if (is_word(key, slots))
        return hosts_said_number(r, "slots=", value, &said->slots);
    if (is_word(key, most))
        return hosts_said_number(r, "max_slots=", value, &said->most);
    if (is_word(key, user)) {
        said->user = value;
        return piece_is_user(value) || hosts_complain(r, "\"%.*s\" is no user's name", SHOWN(value));
    }
    return is_word(key, ignored) ||
           hosts_complain(r, "%.*s= is not understood (slots=N, max_slots=N, user=NAME are)", SHOWN(key));
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
        return hosts_complain(r, "= without a word before it");
    if (!hosts_read_host(r, name, &said))
        return false;
    if (said.most && said.slots > said.most)
        return hosts_complain(r, "slots=%d is more than max_slots=%d", said.slots, said.most);
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
    return r->hosts->count > 0 || hosts_complain(r, "no host is named there");
}

bool hosts_parse_file(struct host_list *hosts, const char *text, char *why, size_t size)
{
    struct reading r = {hosts, why, size, 0};
    return read_lines(&r, text, read_line);
}

static bool read_sge_line(const struct reading *r, const char *p, const char *end)
{
    struct piece name, slots;
    struct said said = {0};
    if (!next_word(&p, end, "", &name))
        return true;
    if (!next_word(&p, end, "", &slots))
        return hosts_complain(r, "no number of slots");
    return hosts_said_number(r, "slots ", slots, &said.slots) && hosts_read_host(r, name, &said);
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
        if (!hosts_read_host(&r, name, &said))
            return false;
    }
    return hosts->count > 0 || hosts_complain(&r, "no host is named there");
}

/* 4(x2),1: of two nodes 4 each, of the next 1. */
static bool read_tasks(const struct reading *r, const char *tasks, int first)
{
    struct host_list *h = r->hosts;
    struct piece rest = {tasks, strlen(tasks)};
    int node = first;
    while (rest.len > 0) {
        struct piece item = piece_cut(&rest, ','), times_text = item, count_text = piece_cut(&times_text, '(');
        int count, times = 1;
        if (!hosts_said_number(r, "tasks for each node: ", count_text, &count))
            return false;
        if (count_text.len < item.len &&
            (times_text.len < 3 || times_text.at[0] != 'x' || times_text.at[times_text.len - 1] != ')' ||
             !piece_number((struct piece){times_text.at + 1, times_text.len - 2}, &times)))
            return hosts_complain(r, "tasks for each node: %.*s is not understood", SHOWN(item));
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
