/* What the ranks of this node, and its agent, have counted. The blocks are read where they are written
 * (base/counters.h), by the main thread; so they stay mapped while the lock is held. */
#include <stdio.h>
#include <stdlib.h>

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

static void put(FILE *f, const uint64_t *sum)
{
    const char *comma = "";
    fputc('{', f);
    for (int c = 0; c < COUNTERS_N; c++)
        if (sum[c]) {
            fprintf(f, "%s\"%s\":%llu", comma, counters[c].name, (unsigned long long)sum[c]);
            comma = ",";
        }
    fputc('}', f);
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
    fprintf(f, "{\"agent\":");
    put(f, sum);
    fprintf(f, ",\"ranks\":{");
    pthread_mutex_lock(&p->lock);
    for (const struct counted *e = p->counted; e; e = e->next) {
        uint64_t all[COUNTERS_N] = {0};
        counters_join(all, e->gone);
        if (e->page)
            counters_take_page(all, e->page);
        fprintf(f, "%s\"%d\":", e == p->counted ? "" : ",", e->rank);
        put(f, all);
    }
    pthread_mutex_unlock(&p->lock);
    fprintf(f, "}}");
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
