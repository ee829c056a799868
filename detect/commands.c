/* What other threads ask of the helper: commands, which its thread takes, and what it noted for them. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "detect/helper_internal.h"
#include "runtime/base/log.h"

static void enqueue(struct helper *h, const struct helper_command *c)
{
    pthread_mutex_lock(&h->commands.lock);
    if (h->commands.n == h->commands.cap) {
        int cap = h->commands.cap ? 2 * h->commands.cap : 16;
        struct helper_command *more = realloc(h->commands.list, (size_t)cap * sizeof *more);
        if (!more) { /* what is lost others may wait for, for ever: so this node ends */
            h->commands.poor = true;
            pthread_mutex_unlock(&h->commands.lock);
            (void)eventfd_write(h->wake_fd, 1);
            return;
        }
        h->commands.list = more;
        h->commands.cap = cap;
    }
    bool first = h->commands.n == 0;
    h->commands.list[h->commands.n++] = *c;
    pthread_mutex_unlock(&h->commands.lock);
    if (first && eventfd_write(h->wake_fd, 1))
        log_error("detect: cannot wake the helper thread: %m");
}

static void carry_out(struct helper *h, const struct helper_command *c)
{
    switch (c->kind) {
    case CMD_SUBMIT:
        member_submit(h->m, &c->event, h->now);
        break;
    case CMD_PREPARED:
        member_prepared(h->m, c->proposal, c->value, h->now);
        break;
    case CMD_CHECK:
        member_check(h->m, c->node, h->now);
        break;
    case CMD_BROKEN:
        member_broken(h->m, c->node, h->now);
        break;
    case CMD_REFUSED:
        member_refused(h->m, c->node, h->now);
        break;
    case CMD_STAKE:
        member_stake(h->m, c->node, (enum member_stake)c->value, h->now);
        break;
    case CMD_WAITS:
        member_waits(h->m, c->node, c->value, h->now);
        break;
    case CMD_MEET:
        meet_take(h, c->candidate);
        break;
    }
}

static _Thread_local const struct helper *runs_here; /* the helper whose thread this is */

void helper_commands_here(struct helper *h)
{
    runs_here = h;
}

void helper_submit(struct helper *h, const struct view_event *event)
{
    enqueue(h, &(struct helper_command){.kind = CMD_SUBMIT, .event = *event});
}

void helper_prepared(struct helper *h, uint64_t proposal, uint64_t value)
{
    struct helper_command c = {.kind = CMD_PREPARED, .proposal = proposal, .value = value};
    if (runs_here == h) /* the usual case, from within the callback: no way round */
        carry_out(h, &c);
    else
        enqueue(h, &c);
}

void helper_check(struct helper *h, int node)
{
    enqueue(h, &(struct helper_command){.kind = CMD_CHECK, .node = node});
}

void helper_stake(struct helper *h, int node, enum member_stake stake)
{
    enqueue(h, &(struct helper_command){.kind = CMD_STAKE, .node = node, .value = stake});
}

void helper_waits(struct helper *h, int node, uint64_t until)
{
    enqueue(h, &(struct helper_command){.kind = CMD_WAITS, .node = node, .value = until});
}

void helper_broken(struct helper *h, int node)
{
    enqueue(h, &(struct helper_command){.kind = CMD_BROKEN, .node = node});
}

void helper_refused(struct helper *h, int node)
{
    enqueue(h, &(struct helper_command){.kind = CMD_REFUSED, .node = node});
}

keel_status helper_meet(struct helper *h, int node, const struct helper_blob *blob)
{
    struct candidate *c = calloc(1, sizeof *c);
    if (!c)
        return KEEL_ERR_NOMEM;
    c->node = node;
    if (node < 0 || node >= h->config.params.n || !meet_read(blob, &c->where)) {
        free(c);
        return KEEL_ERR_ARG;
    }
    enqueue(h, &(struct helper_command){.kind = CMD_MEET, .node = node, .candidate = c});
    return KEEL_OK;
}

bool helper_take_commands(struct helper *h)
{
    pthread_mutex_lock(&h->commands.lock);
    int n = h->commands.n;
    struct helper_command *list = h->commands.list;
    h->commands.list = NULL;
    h->commands.n = h->commands.cap = 0;
    pthread_mutex_unlock(&h->commands.lock);
    for (int i = 0; i < n; i++)
        carry_out(h, &list[i]);
    free(list);
    return n > 0;
}

void helper_drop_commands(struct helper *h)
{
    for (int i = 0; i < h->commands.n; i++)
        free(h->commands.list[i].candidate);
    free(h->commands.list);
}

void helper_status(struct helper *h, struct helper_status *out)
{
    pthread_mutex_lock(&h->commands.lock);
    *out = h->told.status;
    pthread_mutex_unlock(&h->commands.lock);
}

int helper_links(struct helper *h, struct member_link out[MEMBER_LINKS_MAX])
{
    pthread_mutex_lock(&h->commands.lock);
    int n = h->told.n_links;
    memcpy(out, h->told.links, (size_t)n * sizeof *out);
    pthread_mutex_unlock(&h->commands.lock);
    return n;
}
