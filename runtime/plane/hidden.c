/* How a rank ends that is not the process that we have started. A script may hide its program's end (./a; exit 0), and
 * go on without it.
 *
 * The rank's process is watched by itself. When it has ended it has said what it has to say: keel_finalize; by a word,
 * that it calls exit, with its code; or that keel_init came to nothing. Else the kernel may know its exit code or
 * signal (6.15). Who exits with 0 is not dead, and how its script ends counts; another code is the rank's. All other
 * ends are deaths, and the script and what else it has started go with the process, so that the rank may be begun anew:
 * only then, when the script's end is heard, the view is told. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/signals.h"
#include "runtime/plane/plane_int.h"

static void died(struct plane *p, struct process *k, int signal)
{
    k->hidden = true;
    k->signal = signal;
    queue_event_of(p, "hidden_death", J_INT("rank", k->proc->life.rank), J_INT("pid", k->owner),
                   J_INT("signal", signal));
    struct upcall *u = queue_upcall_new(p, UPCALL_HIDDEN_DEATH);
    if (!u)
        return;
    u->seat = k->proc->id;
    u->pid = k->owner;
    u->code = signal;
    queue_upcall(p, u);
}

static void judge(struct plane *p, struct process *k)
{
    uint32_t word = k->intents ? atomic_load(&k->intents->ended) : 0;
    int status = word ? (int)(word - 1) << 8 : 0;
    if (k->left || k->excused || k->proc->exited || k->proc->released || p->agent.view.stopped)
        return; /* released: what is left of its script is ended for that */
    if (!word && !process_end(k->owner_fd, k->owner, &status))
        died(p, k, SIGNAL_HIDDEN);
    else if (WIFSIGNALED(status))
        died(p, k, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        ranks_exited(&p->agent, k->proc, WEXITSTATUS(status), 0);
}

void hidden_begin(struct plane *p, struct process *k)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = k};
    if (k->owner <= 0 || k->owner == k->pid)
        return;
    k->owner_fd = process_open(k->owner);
    if (k->owner_fd >= 0 && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, k->owner_fd, &ev) == 0)
        return;
    if (k->owner_fd < 0 && errno == ESRCH) { /* since it asked */
        if (k->proc && k->proc->life.rank >= 0)
            judge(p, k);
        return;
    }
    log_warn("pid %d, which is to be rank %d, is not watched: how it ends is its script's matter", k->owner,
             k->proc ? k->proc->life.rank : -1);
    hidden_forget(p, k);
}

void hidden_forget(struct plane *p, struct process *k)
{
    if (k->owner_fd < 0)
        return;
    epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, k->owner_fd, NULL);
    process_close(k->owner_fd);
    k->owner_fd = -1;
}

void hidden_look(struct plane *p, struct process *k)
{
    if (k->owner_fd < 0 || !process_has_ended(k->owner_fd))
        return;
    if (k->proc && k->proc->life.rank >= 0)
        judge(p, k);
    hidden_forget(p, k);
}

void hidden_closed(struct process *k)
{
    k->mute = k->owner_fd >= 0 && !process_ending(k->owner);
    hidden_mute(k);
}

/* What exec takes from it and close does not is the page that it shares with us. Who is ending loses its memory, too,
 * but says before that it ends. */
void hidden_mute(struct process *k)
{
    bool watched = k->owner_fd >= 0 && !k->left && !k->excused;
    if (k->mute && watched && !process_maps(k->owner, k->intents_inode) && !process_ending(k->owner))
        k->excused = true;
}
