/* keelctl attach: a job's output, until it ends. */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct watched {
    struct session session;
    int fd;
    bool over;
};

static void show(const uint8_t *frame, size_t len)
{
    if (len <= OUTPUT_HEADER)
        return;
    FILE *to = get_u32(frame + 8) == 2 ? stderr : stdout;
    fwrite(frame + OUTPUT_HEADER, 1, len - OUTPUT_HEADER, to);
    fflush(to);
}

/* Returns false once this agent has nothing more to say. */
static bool attach_read(struct watched *w, int *code, bool *told)
{
    struct bytes out = {0};
    uint8_t type;
    const uint8_t *body;
    size_t len;
    if (ask_receive(&w->session, w->fd, 0) == 0)
        return false;
    while (session_next(&w->session, &out, &type, &body, &len)) {
        if (type == MSG_OUTPUT)
            show(body, len);
        json_t *m = type == MSG_OVER ? codec_object(body, len) : NULL;
        if (!m)
            continue;
        w->over = true;
        if (!*told || (*code == 0 && int_of(m, "code") != 0)) {
            *code = (int)int_of(m, "code");
            if (*text_of(m, "why"))
                fprintf(stderr, "keelctl: %s\n", text_of(m, "why"));
        }
        *told = true;
        json_decref(m);
    }
    return !w->over;
}

int verb_attach(const struct job_agents *job, const struct request *r)
{
    int count = job->count, left = 0, code = 0;
    (void)r;
    bool told = false;
    struct watched *all = pm_alloc((size_t)count * sizeof *all);
    struct pollfd *fds = pm_alloc((size_t)count * sizeof *fds);
    struct bytes none = {0};
    for (int i = 0; i < count; i++) {
        session_init(&all[i].session, SESSION_PLAIN, 0, NULL, NULL, &none);
        all[i].fd = job->agents[i].fd;
        bool good = ask(all[i].fd, MSG_ATTACH, "");
        fds[i] = (struct pollfd){.fd = good ? all[i].fd : -1, .events = POLLIN};
        left += good;
    }
    while (left > 0) {
        if (poll(fds, (nfds_t)count, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < count; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !attach_read(&all[i], &code, &told)) {
                fds[i].fd = -1;
                left--;
            }
    }
    for (int i = 0; i < count; i++)
        session_fini(&all[i].session);
    free(all);
    free(fds);
    if (!told)
        pm_quit(1, "the job's nodes are gone without a word");
    return code;
}
