#include "pm/wire/ticket.h"

#include "pm/wire/quit.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

void ticket_make(struct ticket *t)
{
    do
        randombytes_buf(&t->id, sizeof t->id);
    while (t->id == SESSION_OF_JOB);
    randombytes_buf(t->key, sizeof t->key);
}

void summons_write(const struct summons *s, char *text, size_t size)
{
    char hex[2 * SESSION_SECRET + 1];
    sodium_bin2hex(hex, sizeof hex, s->ticket.key, sizeof s->ticket.key);
    snprintf(text, size, "%016llx,%016llx,%s,%s,%d,%d,%s\n", (unsigned long long)s->job_id,
             (unsigned long long)s->ticket.id, hex, s->host, s->port, s->node, s->from[0] ? s->from : "-");
    sodium_memzero(hex, sizeof hex);
}

void summons_loopback(int node, char *out, size_t size)
{
    const char *net = getenv("KEEL_BED_NET"); /* X.Y */
    int a = 127, b = 0;
    if (net && (sscanf(net, "%d.%d", &a, &b) != 2 || a < 1 || a > 255 || b < 0 || b > 255))
        pm_quit(2, "KEEL_BED_NET=%s is not two numbers, as 127.0", net);
    snprintf(out, size, "%d.%d.%d.%d", a, b, (node + 2) / 256, (node + 2) % 256);
}

bool summons_read(const char *text, struct summons *s)
{
    unsigned long long job, id;
    char hex[2 * SESSION_SECRET + 1], end, tail;
    size_t len = 0;
    *s = (struct summons){0};
    if (sscanf(text, "%16llx,%16llx,%64[0-9a-f],%63[^,],%d,%d,%63[^,\n]%c%c", &job, &id, hex, s->host, &s->port,
               &s->node, s->from, &end, &tail) != 8 ||
        end != '\n')
        return false;
    s->job_id = job;
    s->ticket.id = id;
    if (strcmp(s->from, "-") == 0)
        s->from[0] = '\0';
    bool good = sodium_hex2bin(s->ticket.key, sizeof s->ticket.key, hex, strlen(hex), NULL, &len, NULL) == 0 &&
                len == sizeof s->ticket.key && s->port > 0 && s->port < 65536 && s->node >= 0;
    sodium_memzero(hex, sizeof hex);
    return good;
}
