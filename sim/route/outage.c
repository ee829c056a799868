#include "sim/route/outage.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void outages_fini(struct outages *o)
{
    free(o->list);
    *o = (struct outages){0};
}

bool outages_add(struct outages *o, int32_t cable, uint64_t start_ns, uint64_t end_ns)
{
    if (o->n == o->cap) {
        size_t cap = o->cap ? 2 * o->cap : 64;
        struct outage *more = realloc(o->list, cap * sizeof *more);
        if (!more)
            return false;
        o->list = more;
        o->cap = cap;
    }
    o->list[o->n++] = (struct outage){cable, start_ns, end_ns};
    return true;
}

static int by_start(const void *pa, const void *pb)
{
    const struct outage *a = pa, *b = pb;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->cable < b->cable ? -1 : a->cable > b->cable;
}

void outages_sort(struct outages *o)
{
    if (o->n)
        qsort(o->list, o->n, sizeof *o->list, by_start);
}

/* Scratch of a search for a way round: marks by round number, so that nothing needs clearing. */
struct search {
    const struct fabric *f;
    uint8_t *broken; /* [link] both links of a broken cable */
    uint32_t *mark;
    int32_t *queue;
    uint32_t round;
    int32_t reached; /* by the last search that ran to its end: queue[0..reached-1], nearest first */
};

static bool search_init(struct search *s, const struct fabric *f)
{
    *s = (struct search){.f = f};
    s->broken = calloc((size_t)fabric_links(f) + 1, 1);
    s->mark = calloc((size_t)f->routers, sizeof *s->mark);
    s->queue = malloc((size_t)f->routers * sizeof *s->queue);
    return s->broken && s->mark && s->queue;
}

static void search_fini(struct search *s)
{
    free(s->broken);
    free(s->mark);
    free(s->queue);
}

static void search_set(struct search *s, int32_t cable, uint8_t broken)
{
    s->broken[cable] = broken;
    s->broken[s->f->reverse[cable]] = broken;
}

static bool search_reaches(struct search *s, int32_t from, int32_t to)
{
    int32_t head = 0, tail = 0;
    uint32_t round = ++s->round;
    s->mark[from] = round;
    s->queue[tail++] = from;
    while (head < tail) {
        int32_t r = s->queue[head++];
        if (r == to)
            return true;
        for (int p = 0; p < s->f->ports; p++) {
            int32_t link = r * s->f->ports + p, next = s->f->neighbor[link];
            if (next < 0 || s->mark[next] == round || s->broken[link])
                continue;
            s->mark[next] = round;
            s->queue[tail++] = next;
        }
    }
    s->reached = tail;
    return false;
}

uint64_t outage_end(uint64_t start_ns, double lasts_ns)
{
    return lasts_ns < 1e18 ? start_ns + (lasts_ns < 1 ? 1 : (uint64_t)lasts_ns) : OUTAGE_FOREVER;
}

static bool add_random(struct outages *o, const struct outage_random *r, int32_t cable, struct rng *rng)
{
    uint64_t start = (uint64_t)(rng_double(rng) * r->onset * (double)r->time_ns);
    double last = rng_double(rng) * r->lasting * (double)r->time_ns;
    return outages_add(o, cable, start, r->permanent ? OUTAGE_FOREVER : outage_end(start, last + 1));
}

static int by_time(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return a < b ? -1 : a > b;
}

/* A cable that is whole at this time and, where that is asked for, may break without cutting the network; -1 when many
 * draws find none. */
static int32_t draw_whole(struct search *s, const struct outage_random *r, const int32_t *cable, int32_t ncables,
                          struct rng *rng)
{
    enum { TRIES = 1000 };
    for (int i = 0; i < TRIES; i++) {
        int32_t c = cable[rng_below(rng, (uint64_t)ncables)];
        if (s->broken[c])
            continue;
        search_set(s, c, 1);
        if (!r->keep_connected || search_reaches(s, c / s->f->ports, s->f->neighbor[c]))
            return c;
        search_set(s, c, 0);
    }
    return -1;
}

/* Outages of one length: as all last equally long, they end in the order in which they begin. */
static const char *outages_equal(struct outages *o, const struct outage_random *r, struct search *s,
                                 const int32_t *cable, int32_t ncables, struct rng *rng)
{
    const char *wrong = NULL;
    uint64_t *start = malloc(((size_t)r->count + 1) * sizeof *start);
    size_t over = o->n; /* the first that has not ended */
    for (int32_t i = 0; start && i < r->count; i++)
        start[i] = (uint64_t)(rng_double(rng) * r->onset * (double)r->time_ns);
    if (!start)
        return "out of memory";
    qsort(start, (size_t)r->count, sizeof *start, by_time);
    for (int32_t i = 0; i < r->count && !wrong; i++) {
        for (; over < o->n && o->list[over].end_ns < start[i]; over++)
            search_set(s, o->list[over].cable, 0);
        int32_t c = ncables ? draw_whole(s, r, cable, ncables, rng) : -1;
        if (c < 0)
            wrong = "the network has too few cables for so many failures at a time (or they would cut it in two)";
        else if (!outages_add(o, c, start[i], outage_end(start[i], (double)r->length_ns)))
            wrong = "out of memory";
    }
    free(start);
    return wrong;
}

const char *outages_random(struct outages *o, const struct fabric *f, const struct outage_random *r, struct rng *rng)
{
    if (r->count < 0)
        return "the number of failures is negative";
    const char *wrong = "out of memory";
    int32_t ncables = 0, placed = 0, *cable = malloc((size_t)fabric_links(f) * sizeof *cable + 1);
    struct search s;
    if (!search_init(&s, f) || !cable)
        goto out;
    for (int32_t l = 0; l < fabric_links(f); l++)
        if (f->neighbor[l] >= 0 && f->reverse[l] > l)
            cable[ncables++] = l;
    if (r->length_ns) {
        wrong = outages_equal(o, r, &s, cable, ncables, rng);
        goto sort;
    }
    for (int32_t i = 0; i < ncables && placed < r->count; i++) {
        int32_t j = i + (int32_t)rng_below(rng, (uint64_t)(ncables - i)), c = cable[j];
        cable[j] = cable[i];
        search_set(&s, c, 1);
        if (r->keep_connected && !search_reaches(&s, c / f->ports, f->neighbor[c])) {
            search_set(&s, c, 0);
            continue;
        }
        if (!add_random(o, r, c, rng))
            goto out;
        placed++;
    }
    wrong =
        placed < r->count ? "the network has too few cables for so many failures (or they would cut it in two)" : NULL;
sort:
    outages_sort(o);
out:
    search_fini(&s);
    free(cable);
    return wrong;
}

int outages_keep_connected(struct outages *o, const struct fabric *f)
{
    struct search s;
    size_t n = 0;
    bool ok = search_init(&s, f);
    for (size_t i = 0; ok && i < o->n; i++) {
        int32_t c = o->list[i].cable;
        bool was = s.broken[c], forever = o->list[i].end_ns == OUTAGE_FOREVER;
        if (forever)
            search_set(&s, c, 1);
        if (forever && !was && !search_reaches(&s, c / f->ports, f->neighbor[c]))
            search_set(&s, c, 0);
        else
            o->list[n++] = o->list[i];
    }
    int gone = ok ? (int)(o->n - n) : -1;
    if (ok)
        o->n = n;
    search_fini(&s);
    return gone;
}

/* One decimal number at *p with blanks around it, up to the comma or zero that ends it; moves *p behind a comma. */
static bool field_number(const char **p, char ends, double *value)
{
    const char *first = *p + strspn(*p, " \t");
    size_t length = strspn(first, "0123456789.eE+-");
    char *end;
    errno = 0;
    *value = strtod(first, &end);
    if (length == 0 || end != first + length || errno)
        return false;
    end += strspn(end, " \t");
    if (*end != ends)
        return false;
    *p = end + (ends != '\0');
    return true;
}

static const char *read_line(struct outages *o, const struct fabric *f, const char *p)
{
    double start, end = 0, router, port;
    if (!field_number(&p, ',', &start))
        return "the start is not a number";
    const char *behind = p + strspn(p, " \t");
    bool forever = *behind == ',';
    if (forever)
        p = behind + 1;
    else if (!field_number(&p, ',', &end))
        return "the end is neither empty nor a number";
    if (!field_number(&p, ',', &router) || !field_number(&p, '\0', &port))
        return "a line is start_us,end_us,router,port";
    if (!(start >= 0 && start < 1e15) || (!forever && !(end > start && end < 1e15)))
        return "times must be positive and the end behind the start";
    if (!(router >= 0 && router < f->routers && port >= 0 && port < f->ports) || router != (int32_t)router ||
        port != (int32_t)port || f->neighbor[(int32_t)router * f->ports + (int32_t)port] < 0)
        return "the network has no such link";
    int32_t link = (int32_t)router * f->ports + (int32_t)port;
    uint64_t end_ns = forever ? OUTAGE_FOREVER : (uint64_t)(end * 1000);
    return outages_add(o, fabric_cable(f, link), (uint64_t)(start * 1000), end_ns) ? NULL : "out of memory";
}

/* A line of any length, without its comment. Zero bytes are none of it: they would hide what follows them.
 * fits   false when it has zero bytes or more than there is room for. */
static bool next_line(char *line, size_t size, FILE *in, bool *fits)
{
    size_t n = 0;
    int c, comment = 0;
    *fits = true;
    while ((c = getc(in)) != EOF && c != '\n') {
        comment |= c == '#';
        if (comment || c == '\r')
            continue;
        *fits &= c != '\0' && n + 1 < size;
        if (n + 1 < size)
            line[n++] = (char)c;
    }
    line[n] = '\0';
    return c == '\n' || n > 0 || comment || !*fits;
}

/* Names of columns; "nan" is none. */
static bool is_header(const char *p)
{
    char *end;
    strtod(p, &end);
    return isalpha((unsigned char)*p) && end == p;
}

bool outages_read(struct outages *o, const struct fabric *f, FILE *in, const char *name, char what[160])
{
    char line[256];
    bool fits;
    for (int number = 1; next_line(line, sizeof line, in, &fits); number++) {
        const char *p = line + strspn(line, " \t"), *wrong = fits ? NULL : "a line is start_us,end_us,router,port";
        if (!wrong && (*p == '\0' || (number == 1 && is_header(p))))
            continue;
        if (!wrong)
            wrong = read_line(o, f, p);
        if (wrong) {
            snprintf(what, 160, "%.80s:%d: %s", name, number, wrong);
            return false;
        }
    }
    if (ferror(in)) {
        snprintf(what, 160, "%.80s: %s", name, strerror(errno));
        return false;
    }
    outages_sort(o);
    return true;
}

/* Distances from one router by a flood; adds up over the endpoints it reaches. */
static void flood_from(struct search *s, int32_t home, int32_t *dist, const int32_t *weight, double *pairs,
                       double *hops)
{
    search_reaches(s, home, -1);
    dist[home] = 0;
    for (int32_t i = 0; i < s->reached; i++) {
        int32_t r = s->queue[i];
        *pairs += weight[r];
        *hops += (double)weight[r] * dist[r];
        for (int p = 0; p < s->f->ports; p++) {
            int32_t link = r * s->f->ports + p, to = s->f->neighbor[link];
            if (to >= 0 && dist[to] < 0 && !s->broken[link])
                dist[to] = dist[r] + 1;
        }
    }
}

bool outages_connectivity(const struct outages *o, const struct fabric *f, struct outage_connectivity *result)
{
    struct search s;
    size_t routers = (size_t)f->routers;
    int32_t *dist = malloc(routers * sizeof *dist), *weight = calloc(routers, sizeof *weight);
    bool ok = search_init(&s, f) && dist && weight;
    if (!ok)
        goto out;
    for (size_t i = 0; i < o->n; i++)
        search_set(&s, o->list[i].cable, 1);
    for (int32_t e = 0; e < f->endpoints; e++)
        weight[fabric_home(f, e)]++;
    double pairs = 0, hops = 0, whole = 0, all = (double)f->endpoints * (f->endpoints - 1);
    for (int32_t a = 0; a < f->endpoints; a++) {
        memset(dist, -1, routers * sizeof *dist);
        flood_from(&s, fabric_home(f, a), dist, weight, &pairs, &hops);
        pairs -= 1; /* itself */
        for (int32_t b = 0; b < f->endpoints; b++)
            whole +=
                a != b && fabric_hops_avoiding(f, fabric_home(f, a), fabric_home(f, b), b, s.broken, INT32_MAX) >= 0;
    }
    *result = (struct outage_connectivity){pairs / all, whole / all, pairs > 0 ? hops / pairs : 0};
out:
    search_fini(&s);
    free(dist);
    free(weight);
    return ok;
}
