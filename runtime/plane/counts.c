/* What the ranks of this node, and its agent, have counted. The blocks are read where they are written
 * (base/counters.h), by the main thread; so they stay mapped while the lock is held. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/json.h"
#include "runtime/plane/plane_int.h"

/* A rank that runs on this node, or has: one entry. */
struct counted {
    struct counted *next;
    int rank;
    const struct counter_page *page; /* of its process; NULL: it has ended */
    uint64_t gone[COUNTERS_N];       /* of those that have ended */
};

static void end(struct counted *e)
{
    if (e->page)
        counters_take_page(e->gone, e->page);
    e->page = NULL;
}

bool counts_begin(struct plane *p, int rank, const struct counter_page *page)
{
    pthread_mutex_lock(&p->lock);
    struct counted *e = p->counted;
    while (e && e->rank != rank)
        e = e->next;
    if (!e && (e = calloc(1, sizeof *e))) {
        e->rank = rank;
        e->next = p->counted;
        p->counted = e;
    }
    if (e) {
        end(e); /* it has not been released yet, and writes no more */
        e->page = page;
    }
    pthread_mutex_unlock(&p->lock);
    return e;
}

void counts_end(struct plane *p, const struct counter_page *page)
{
    pthread_mutex_lock(&p->lock);
    for (struct counted *e = p->counted; e; e = e->next)
        if (e->page == page)
            end(e);
    pthread_mutex_unlock(&p->lock);
}

void counts_free(struct plane *p)
{
    for (struct counted *e = p->counted, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    p->counted = NULL;
}

static void put(struct json_writer *w, const char *key, const uint64_t *sum)
{
    json_open(w, key, '{');
    for (int c = 0; c < COUNTERS_N; c++)
        if (sum[c])
            json_put(w, J_UINT(counters[c].name, sum[c]));
    json_close(w, '}');
}

char *plane_counters_json(struct plane *p)
{
    char *text = NULL;
    size_t size;
    FILE *f = p->running ? open_memstream(&text, &size) : NULL;
    if (!f)
        return NULL;
    uint64_t sum[COUNTERS_N] = {0};
    counters_take(sum, &p->agent.counts);
    struct json_writer w = json_into_file(f);
    json_open(&w, NULL, '{');
    put(&w, "agent", sum);
    json_open(&w, "ranks", '{');
    pthread_mutex_lock(&p->lock);
    for (const struct counted *e = p->counted; e; e = e->next) {
        uint64_t all[COUNTERS_N] = {0};
        counters_sum(all, e->gone);
        if (e->page)
            counters_take_page(all, e->page);
        char rank[16];
        snprintf(rank, sizeof rank, "%d", e->rank);
        put(&w, rank, all);
    }
    pthread_mutex_unlock(&p->lock);
    json_close(&w, '}');
    json_close(&w, '}');
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
