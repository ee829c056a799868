#include "pm/pmi/pmi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What get_maxes announces. */
enum { KVSNAME_MAX = 256, KEY_MAX = 64, VALUE_MAX = 1024, LINE_MAX_BYTES = 4096 };

const char pmi_barrier_out[] = "cmd=barrier_out\n";

struct pmi_server {
    int ranks, local_ranks;
    char *kvsname, *mapping;
    json_t *kvs; /* agreed on by a barrier */
    json_t *own; /* put by local ranks */
    int in_barrier;
    bool fencing; /* all are in, the release is awaited */
};

struct pmi_client {
    struct pmi_server *server;
    int rank;
    struct bytes in;
    bool initialized, in_barrier, in_spawn, broken, gone;
};

/* One request: pointers into the line, which parse() cuts up. */
struct request {
    const char *cmd;
    char *fields[16][2];
    int count;
};

struct pmi_server *pmi_create(int ranks, int local_ranks, const char *kvsname, const char *mapping)
{
    struct pmi_server *s = pm_alloc(sizeof *s);
    s->ranks = ranks;
    s->local_ranks = local_ranks;
    s->kvsname = pm_strdup(kvsname);
    /* a mapping that does not fit a value is left out: MPI then compares host names */
    s->mapping = strlen(mapping) < VALUE_MAX ? pm_strdup(mapping) : NULL;
    s->kvs = json_object();
    s->own = json_object();
    return s;
}

void pmi_destroy(struct pmi_server *s)
{
    if (!s)
        return;
    json_decref(s->kvs);
    json_decref(s->own);
    free(s->kvsname);
    free(s->mapping);
    free(s);
}

struct pmi_client *pmi_client_create(struct pmi_server *s, int rank)
{
    struct pmi_client *c = pm_alloc(sizeof *c);
    c->server = s;
    c->rank = rank;
    return c;
}

void pmi_client_destroy(struct pmi_client *c)
{
    if (!c)
        return;
    bytes_free(&c->in);
    free(c);
}

/* "a=b c=d": values end at a space. */
static bool parse(char *line, struct request *r)
{
    memset(r, 0, sizeof *r);
    char *p = line;
    while (*p) {
        p += strspn(p, " ");
        if (*p == '\0')
            break;
        char *key = p;
        p += strcspn(p, "= ");
        if (*p != '=' || r->count == 16)
            return false;
        *p++ = '\0';
        r->fields[r->count][0] = key;
        r->fields[r->count][1] = p;
        r->count++;
        p += strcspn(p, " ");
        if (*p)
            *p++ = '\0';
    }
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->fields[i][0], "cmd") == 0)
            r->cmd = r->fields[i][1];
    return r->cmd != NULL;
}

static const char *field(const struct request *r, const char *key)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->fields[i][0], key) == 0)
            return r->fields[i][1];
    return NULL;
}

static void reply(struct bytes *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void reply(struct bytes *out, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    bytes_append(out, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void do_put(struct pmi_server *s, const struct request *r, struct bytes *out)
{
    const char *key = field(r, "key"), *value = field(r, "value"), *name = field(r, "kvsname");
    const char *bad = NULL;
    if (!key || !value || strlen(key) >= KEY_MAX || strlen(value) >= VALUE_MAX || !*key)
        bad = "bad_key_or_value";
    else if (name && strcmp(name, s->kvsname) != 0)
        bad = "kvs_not_found";
    else if (json_object_get(s->kvs, key) || json_object_get(s->own, key))
        bad = "duplicate_key";
    else if (json_object_set_new(s->own, key, json_string(value)) != 0)
        bad = "key_or_value_is_not_text";
    reply(out, "cmd=put_result rc=%d msg=%s\n", bad ? -1 : 0, bad ? bad : "success");
}

static void do_get(struct pmi_server *s, const struct request *r, struct bytes *out)
{
    const char *key = field(r, "key"), *name = field(r, "kvsname"), *value = NULL;
    if (key && (!name || strcmp(name, s->kvsname) == 0)) {
        if (strcmp(key, "PMI_process_mapping") == 0)
            value = s->mapping;
        else if (strcmp(key, "PMI_dead_processes") == 0)
            value = "";
        else if (!(value = json_string_value(json_object_get(s->kvs, key))))
            value = json_string_value(json_object_get(s->own, key));
    }
    if (value)
        reply(out, "cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        reply(out, "cmd=get_result rc=-1 msg=key_nosuchkey_not_found value=unknown\n");
}

static bool is_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return n > 0 && n <= 32 && text[n] == '\0';
}

static int do_init(struct pmi_client *c, const struct request *r, struct bytes *out)
{
    const char *version = field(r, "pmi_version");
    bool good = version && strcmp(version, "1") == 0;
    c->initialized = good;
    /* PMI-2 clients begin with this line too; rc tells them that they are not served here */
    reply(out, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n", good ? 0 : -1);
    return PMI_NONE;
}

static int fence_if_all_in(struct pmi_server *s)
{
    if (s->fencing || s->in_barrier == 0 || s->in_barrier < s->local_ranks)
        return PMI_NONE;
    s->fencing = true;
    return PMI_FENCE;
}

static int do_barrier(struct pmi_client *c, const char **why)
{
    if (c->in_barrier) {
        *why = "barrier_in inside a barrier";
        return PMI_BROKEN;
    }
    c->in_barrier = true;
    c->server->in_barrier++;
    return fence_if_all_in(c->server);
}

static int do_request(struct pmi_client *c, const struct request *r, struct bytes *out, int *abort_code,
                      const char **why)
{
    struct pmi_server *s = c->server;
    const char *cmd = r->cmd;
    if (strcmp(cmd, "init") == 0)
        return do_init(c, r, out);
    if (strcmp(cmd, "abort") == 0) {
        const char *code = field(r, "exitcode");
        *abort_code = code ? atoi(code) : 1;
        return PMI_ABORT;
    }
    if (!c->initialized) {
        *why = "request before init";
        return PMI_BROKEN;
    }
    if (strcmp(cmd, "barrier_in") == 0)
        return do_barrier(c, why);
    if (strcmp(cmd, "get_maxes") == 0)
        reply(out, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", KVSNAME_MAX, KEY_MAX, VALUE_MAX);
    else if (strcmp(cmd, "get_appnum") == 0)
        reply(out, "cmd=appnum appnum=0\n");
    else if (strcmp(cmd, "get_universe_size") == 0)
        reply(out, "cmd=universe_size size=%d\n", s->ranks);
    else if (strcmp(cmd, "get_my_kvsname") == 0)
        reply(out, "cmd=my_kvsname kvsname=%s\n", s->kvsname);
    else if (strcmp(cmd, "put") == 0)
        do_put(s, r, out);
    else if (strcmp(cmd, "get") == 0)
        do_get(s, r, out);
    else if (strcmp(cmd, "finalize") == 0)
        reply(out, "cmd=finalize_ack rc=0\n");
    else if (is_name(cmd))
        reply(out, "cmd=%s_result rc=-1 msg=not_supported\n", cmd);
    else {
        *why = "unknown command";
        return PMI_BROKEN;
    }
    return PMI_NONE;
}

static int do_line(struct pmi_client *c, char *line, struct bytes *out, int *abort_code, const char **why)
{
    struct request r;
    /* Spawning comes as several lines from mcmd=spawn to endcmd. Refused as a whole. */
    if (strncmp(line, "mcmd=", 5) == 0) {
        c->in_spawn = true;
        return PMI_NONE;
    }
    if (c->in_spawn) {
        if (strcmp(line, "endcmd") != 0)
            return PMI_NONE;
        c->in_spawn = false;
        reply(out, "cmd=spawn_result rc=-1 msg=not_supported\n");
        return PMI_NONE;
    }
    if (!parse(line, &r)) {
        *why = "not a PMI-1 request";
        return PMI_BROKEN;
    }
    return do_request(c, &r, out, abort_code, why);
}

int pmi_client_feed(struct pmi_client *c, const void *data, size_t len, struct bytes *out, int *abort_code,
                    const char **why)
{
    int effects = PMI_NONE;
    if (c->broken)
        return PMI_NONE;
    bytes_append(&c->in, data, len);
    size_t used = 0;
    while (c->rank >= 0 && !(effects & (PMI_BROKEN | PMI_ABORT))) {
        uint8_t *start = c->in.data + used;
        uint8_t *end = used < c->in.len ? memchr(start, '\n', c->in.len - used) : NULL;
        if (!end)
            break;
        *end = '\0';
        if (memchr(start, '\0', (size_t)(end - start))) {
            *why = "a zero byte in a request";
            effects |= PMI_BROKEN;
        } else {
            effects |= do_line(c, (char *)start, out, abort_code, why);
        }
        used = (size_t)(end - c->in.data) + 1;
    }
    bytes_drop(&c->in, used);
    if (c->in.len > LINE_MAX_BYTES) {
        *why = "request too long";
        effects |= PMI_BROKEN;
    }
    c->broken = (effects & PMI_BROKEN) != 0;
    return effects;
}

json_t *pmi_own_pairs(const struct pmi_server *s)
{
    return s->own;
}

int pmi_client_gone(struct pmi_client *c)
{
    if (c->gone || c->rank < 0)
        return PMI_NONE;
    struct pmi_server *s = c->server;
    c->gone = true;
    s->local_ranks--;
    if (c->in_barrier && !s->fencing) {
        c->in_barrier = false;
        s->in_barrier--;
    }
    return fence_if_all_in(s);
}

void pmi_release(struct pmi_server *s, const json_t *kvs)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)kvs, key, value)
        if (json_is_string(value))
            json_object_set(s->kvs, key, value);
    s->in_barrier = 0;
    s->fencing = false;
}

bool pmi_client_release(struct pmi_client *c)
{
    bool was = c->in_barrier;
    c->in_barrier = false;
    return was;
}
