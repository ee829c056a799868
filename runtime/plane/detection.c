/* What the node's detector knows, as JSON for keelctl. */
#include "runtime/plane/plane_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/clock.h"

static double ms_ago(uint64_t now, uint64_t then)
{
    return now > then ? (double)(now - then) / (double)KEEL_NS_PER_MS : 0;
}

static void put_watches(FILE *f, const struct member_status *m, uint64_t now)
{
    for (int i = 0; i < m->n_watches; i++) {
        const struct member_watch_status *w = &m->watches[i];
        fprintf(f, "%s{\"node\":%d,\"age_ms\":%.1f,\"reads\":%llu,\"latency_us\":[", i ? "," : "", w->node,
                ms_ago(now, w->last_life_ns), (unsigned long long)w->reads);
        for (int k = 0; k < MEMBER_LATENCY_BUCKETS; k++)
            fprintf(f, "%s%u", k ? "," : "", w->latency[k]);
        fprintf(f, "]}");
    }
}

/* Of a suspect: how it is, how long it is silent, and when it is declared dead (null: not before somebody waits for it, or not at all). */
static void put_patience(FILE *f, const struct member_doubt *d, uint64_t now)
{
    if (d->node < 0)
        return;
    fprintf(
        f, ",\"how\":\"%s\",\"why\":\"%s\",\"silent_ms\":%.1f,\"waited_for\":%s,\"limit_ms\":", member_how_name(d->how),
        member_why_name(d->why), ms_ago(now, d->since_ns), d->waited_for ? "true" : "false");
    if (d->limit_ns == MEMBER_NEVER)
        fputs("null", f);
    else
        fprintf(f, "%.0f", (double)d->limit_ns / (double)KEEL_NS_PER_MS);
}

static void put_doubts(FILE *f, const struct member_status *m, uint64_t now)
{
    for (int i = 0; i < m->n_doubts; i++) {
        const struct member_doubt_status *d = &m->doubts[i];
        fprintf(f, "%s{\"node\":%d,\"state\":\"%s\",\"since_ms\":%.1f,\"asked\":%d,\"reached\":%d,\"unreached\":%d",
                i ? "," : "", d->node, d->state, ms_ago(now, d->since_ns), d->asked, d->reached, d->unreached);
        put_patience(f, &d->doubt, now);
        fputs("}", f);
    }
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
    fprintf(f, "{\"probe\":\"%s\",\"coordinator\":%d,\"watches\":[", helper_probe(p->helper), s.member.coordinator);
    put_watches(f, &s.member, now);
    fprintf(f, "],\"doubts\":[");
    put_doubts(f, &s.member, now);
    fprintf(f, "],\"links\":[");
    for (int i = 0; i < s.member.n_links; i++)
        fprintf(f, "%s{\"a\":%d,\"b\":%d,\"since_ms\":%.1f}", i ? "," : "", s.member.links[i].a, s.member.links[i].b,
                ms_ago(now, s.member.links[i].since_ns));
    fprintf(f, "],\"said\":[");
    for (int i = 0; i < s.n_said; i++)
        fprintf(f, "%s{\"ms_ago\":%.1f,\"what\":\"%s\",\"node\":%d,\"evidence\":\"%s\",\"why\":\"%s\"}", i ? "," : "",
                ms_ago(now, s.said[i].now_ns), member_report_name(s.said[i].kind), s.said[i].node,
                member_evidence_name(s.said[i].evidence), s.said[i].text);
    fprintf(f, "]}");
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
