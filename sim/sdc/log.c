/* The event log: JSON, a line each. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "sim/cli/cli.h"
#include "sim/sdc/sdc.h"

/* The number behind " KEY=" in the text. */
static bool number(const char *text, const char *key, uint64_t *out)
{
    size_t len = strlen(key);
    for (const char *at = text; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (strncmp(at, key, len) == 0 && at[len] == '=')
            return sscanf(at + len + 1, "%" SCNu64, out) == 1;
    return false;
}

static bool is_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    const char *at = strstr(text, word);
    return at && (at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0');
}

/* Is the call of this text in the list? */
static bool left_out(const char *text, const char *without)
{
    char word[128];
    for (const char *at = without; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        snprintf(word, sizeof word, "call=%.*s", (int)strcspn(at, ","), at);
        if (is_word(text, word))
            return true;
    }
    return false;
}

static void add(struct log *l, const struct event *e)
{
    if (l->events == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        struct event *more = realloc(l->event, l->room * sizeof *more);
        if (!more)
            cli_die("out of memory");
        l->event = more;
    }
    l->event[l->events++] = *e;
}

/* A bit in flight is wrong where it arrives. */
static bool flip_of(const char *text, struct event *e)
{
    uint64_t rank, target;
    if (!number(text, "rank", &rank) || !number(text, "step", &e->step))
        return false;
    if (is_word(text, "where=flight") && number(text, "target", &target))
        rank = target;
    e->flip = true;
    e->rank = (int)rank;
    e->target = -1;
    return true;
}

static bool difference_of(const char *text, struct event *e)
{
    uint64_t rank, target, bytes;
    if (!number(text, "rank", &rank) || !number(text, "step", &e->step) || !number(text, "operations", &e->messages) ||
        !number(text, "bytes", &bytes))
        return false;
    e->rank = (int)rank;
    e->target = number(text, "target", &target) ? (int)target : -1;
    if (bytes == 0)
        e->target = e->rank; /* another call, with which nothing went */
    return true;
}

static void started(struct log *l, const json_t *line)
{
    const json_t *sets = json_object_get(json_object_get(line, "replicas"), "sets");
    l->sets = json_is_integer(sets) ? (int)json_integer_value(sets) : 1;
    l->ranks = (int)json_integer_value(json_object_get(line, "ranks")) / l->sets;
}

static void take(struct log *l, const json_t *line, const char *without)
{
    const char *event = json_string_value(json_object_get(line, "event")),
               *name = json_string_value(json_object_get(line, "name")),
               *text = json_string_value(json_object_get(line, "text"));
    struct event e = {0};
    if (event && strcmp(event, "started") == 0)
        started(l, line);
    if (!event || strcmp(event, "application") != 0 || !name || !text)
        return;
    bool taken = strcmp(name, "flip") == 0
                     ? flip_of(text, &e)
                     : strcmp(name, "differs") == 0 && !left_out(text, without) && difference_of(text, &e);
    if (taken && e.rank >= 0 && e.rank < l->ranks && e.target < l->ranks)
        add(l, &e);
}

static int by_step(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step) : y->flip - x->flip;
}

void log_read(struct log *l, const char *name, const char *without)
{
    char *line = NULL;
    size_t room = 0;
    uint64_t n = 0;
    FILE *f = fopen(name, "r");
    *l = (struct log){0};
    if (!f)
        cli_die("%s: %s", name, strerror(errno));
    while (getline(&line, &room, f) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        n++;
        if (!json_is_object(object))
            cli_die("%s: line %" PRIu64 " is no line of an event log", name, n);
        take(l, object, without);
        json_decref(object);
    }
    free(line);
    fclose(f);
    if (l->ranks < 1)
        cli_die("%s: no job has started in it", name);
    if (l->events)
        qsort(l->event, l->events, sizeof *l->event, by_step);
}

void log_free(struct log *l)
{
    free(l->event);
}
