/* What the node's detector knows, as JSON for keelctl. */
#include "runtime/plane/plane_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/clock.h"

static double ms_ago(uint64_t now, uint64_t then)
{
    return now > then ? (double)(now - then) / (double)KEEL_NS_PER_MS : 0;
}

static void put_watches(struct json_writer *j, const struct member_status *m, uint64_t now)
{
    json_open(j, "watches", '[');
    for (int i = 0; i < m->n_watches; i++) {
        const struct member_watch_status *w = &m->watches[i];
        json_open(j, NULL, '{');
        json_put(j, J_INT("node", w->node));
        json_put(j, J_REAL("age_ms", ms_ago(now, w->last_life_ns), 1));
        json_put(j, J_UINT("reads", w->reads));
        json_open(j, "latency_us", '[');
        for (int k = 0; k < MEMBER_LATENCY_BUCKETS; k++)
            json_put(j, J_UINT(NULL, w->latency[k]));
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* Of a suspect: how it is, how long it is silent, and when it is declared dead (null: not before somebody waits for
 * it, or not at all). */
static void put_patience(struct json_writer *j, const struct member_doubt *d, uint64_t now)
{
    if (d->node < 0)
        return;
    json_put(j, J_TEXT("how", member_how_name(d->how)));
    json_put(j, J_TEXT("why", member_why_name(d->why)));
    json_put(j, J_REAL("silent_ms", ms_ago(now, d->since_ns), 1));
    json_put(j, J_BOOL("waited_for", d->waited_for));
    json_put(j, d->limit_ns == MEMBER_NEVER ? J_NULL("limit_ms")
                                            : J_REAL("limit_ms", (double)d->limit_ns / (double)KEEL_NS_PER_MS, 0));
}

static void put_doubts(struct json_writer *j, const struct member_status *m, uint64_t now)
{
    json_open(j, "doubts", '[');
    for (int i = 0; i < m->n_doubts; i++) {
        const struct member_doubt_status *d = &m->doubts[i];
        json_open(j, NULL, '{');
        json_put_all(j, J_ALL(J_INT("node", d->node), J_TEXT("state", d->state),
                              J_REAL("since_ms", ms_ago(now, d->since_ns), 1), J_INT("asked", d->asked),
                              J_INT("reached", d->reached), J_INT("unreached", d->unreached)));
        put_patience(j, &d->doubt, now);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_links(struct json_writer *j, const struct member_status *m, uint64_t now)
{
    json_open(j, "links", '[');
    for (int i = 0; i < m->n_links; i++) {
        json_open(j, NULL, '{');
        json_put_all(j, J_ALL(J_INT("a", m->links[i].a), J_INT("b", m->links[i].b),
                              J_REAL("since_ms", ms_ago(now, m->links[i].since_ns), 1)));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_said(struct json_writer *j, const struct helper_status *s, uint64_t now)
{
    json_open(j, "said", '[');
    for (int i = 0; i < s->n_said; i++) {
        json_open(j, NULL, '{');
        json_put_all(j, J_ALL(J_REAL("ms_ago", ms_ago(now, s->said[i].now_ns), 1),
                              J_TEXT("what", member_report_name(s->said[i].kind)), J_INT("node", s->said[i].node),
                              J_TEXT("evidence", member_evidence_name(s->said[i].evidence)),
                              J_TEXT("why", s->said[i].text)));
        json_close(j, '}');
    }
    json_close(j, ']');
}

char *plane_detection_json(struct plane *p)
{
    struct helper_status s;
    char *text = NULL;
    size_t size;
    uint64_t now = clock_now_ns();
    FILE *f = p->helper ? open_memstream(&text, &size) : NULL;
    if (!f)
        return NULL;
    helper_status(p->helper, &s);
    struct json_writer j = json_into_file(f);
    json_open(&j, NULL, '{');
    json_put(&j, J_TEXT("probe", helper_probe(p->helper)));
    json_put(&j, J_INT("coordinator", s.member.coordinator));
    put_watches(&j, &s.member, now);
    put_doubts(&j, &s.member, now);
    put_links(&j, &s.member, now);
    put_said(&j, &s, now);
    json_close(&j, '}');
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
