/* This node's processes: control sockets, and the shared memory that they are handed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"
#include "runtime/plane/plane_int.h"
#include "runtime/hall/hall.h"
#include "runtime/net/shm/shm.h"

enum { WELCOME_FDS = 4 + TP_SHM_FDS };

static struct process *of_proc(struct plane *p, const struct proc *proc)
{
    for (struct process *k = p->processes; k; k = k->next)
        if (k->proc == proc)
            return k;
    return NULL;
}

/* ---- control socket ---- */

int procs_send(int socket, const void *data, size_t len, const int *fds, int nfds)
{
    struct iovec iov = {(void *)data, len};
    union {
        char bytes[CMSG_SPACE(WELCOME_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
        memcpy(CMSG_DATA(h), fds, (size_t)nfds * sizeof(int));
    }
    return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* A rank that does not read its socket (256 packets behind) is not waited for. */
static void send_packet(struct process *k, const void *data, size_t len, const int *fds, int nfds)
{
    int error = k->fd >= 0 ? procs_send(k->fd, data, len, fds, nfds) : 0;
    if (error && error != EPIPE) /* EPIPE: it has just ended */
        log_warn("pid %d does not take control messages: %s", k->pid, strerror(error));
}

void procs_answer(void *user, struct proc *proc, const struct control *reply, int64_t handle)
{
    struct process *k = of_proc(user, proc);
    int fd = (int)handle;
    if (k)
        send_packet(k, reply, sizeof *reply, &fd, handle >= 0);
}

enum { UTF8_TAIL_MAX = 3 };

/* A text that was cut ends before the character that was; what is no UTF-8 becomes question marks. NULL: there is no
 * memory. */
static json_t *text_of(const char *text, size_t len, bool cut)
{
    json_t *value = json_stringn(text, len);
    for (size_t less = 1; !value && cut && less <= UTF8_TAIL_MAX && less < len; less++)
        value = json_stringn(text, len - less);
    if (value)
        return value;
    char plain[CONTROL_TEXT_MAX];
    for (size_t i = 0; i < len; i++)
        plain[i] = (char)(text[i] & 0x80 ? '?' : text[i]);
    return json_stringn(plain, len);
}

/* A line of the program's own in the event log. */
static void application_event(struct plane *p, const struct proc *proc, const struct control *r)
{
    size_t name_len = strnlen(r->text, CONTROL_TEXT_MAX), at = name_len + 1,
           room = at < CONTROL_TEXT_MAX ? CONTROL_TEXT_MAX - at : 0;
    size_t len = room ? strnlen(r->text + at, room) : 0;
    json_t *fields = json_pack("{s:i, s:I}", "rank", proc->life.rank, "number", (json_int_t)r->a);
    bool all = fields && (!len || !json_object_set_new(fields, "text", text_of(r->text + at, len, len + 1 >= room))) &&
               !json_object_set_new(fields, "name", text_of(r->text, name_len, false));
    char *dump = all ? json_dumps(fields, JSON_COMPACT) : NULL;
    if (dump) { /* "{...}": its members follow ours */
        dump[0] = ',';
        dump[strlen(dump) - 1] = '\0';
        queue_event(p, "application", dump);
    } else {
        log_error("rank %d: no memory for its event", proc->life.rank);
    }
    free(dump);
    json_decref(fields);
}

/* Its process has gone. A standby's place is another one's then: nobody has been told to be that rank yet. */
static void control_ended(struct plane *p, struct process *k)
{
    bool waited = k->proc && k->proc->life.rank < 0;
    hidden_closed(k);
    entry_close(p, k);
    if (waited)
        hidden_forget(p, k);
    if (k->door_fd >= 0 && waited && !entry_open(p, k))
        log_warn("pid %d: no descriptors for another process in its place", k->pid);
}

static void tell_here(struct plane *p)
{
    struct upcall *u = p->here ? NULL : queue_upcall_new(p, UPCALL_HERE);
    p->here = true;
    if (u)
        queue_upcall(p, u);
}

/* A program that does not use Keel: its process cannot be replaced. True if the job ends for it. */
static bool ends_job(struct plane *p, const struct proc *proc, int signal_number)
{
    if (!signal_number || !settings_plain_death_ends(p->config.settings) || p->here || proc->life.incarnation > 0)
        return false;
    struct upcall *u = queue_upcall_new(p, UPCALL_PLAIN_DEATH);
    if (u) {
        u->seat = proc->id;
        queue_upcall(p, u);
    }
    return true;
}

static void read_control(struct plane *p, struct process *k)
{
    while (k->fd >= 0) {
        struct control r;
        ssize_t n = recv(k->fd, &r, sizeof r, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            control_ended(p, k);
            return;
        }
        if (n != sizeof r || !k->proc || k->proc->life.rank < 0)
            log_warn_some("pid %d sends a control message of %zd bytes", k->pid, n);
        else if (r.type == CONTROL_EVENT)
            application_event(p, k->proc, &r);
        else if (r.type == CONTROL_HERE)
            tell_here(p);
        else if (r.type == CONTROL_GAVE_UP)
            k->excused = true;
        else {
            k->left |= r.type == CONTROL_LEAVING;
            ranks_control(&p->agent, k->proc, &r);
        }
    }
}

void procs_readable(struct plane *p, struct process *k)
{
    entry_readable(p, k);
    read_control(p, k);
    hidden_look(p, k); /* its last words come before its end */
}

bool procs_have_asked(struct plane *p)
{
    bool any = false;
    for (struct process *k = p->processes, *next; k; k = next) {
        next = k->next;
        uint32_t asked = k->intents ? atomic_load_explicit(&k->intents->asked, memory_order_acquire) : k->asked;
        if (asked == k->asked)
            continue;
        k->asked = asked;
        procs_readable(p, k);
        any = true;
    }
    return any;
}

/* ---- joining ---- */

static struct intent_page *make_intents(int *fd, uint64_t *inode)
{
    struct stat file;
    *fd = memfd_create("keel-intents", MFD_CLOEXEC);
    if (*fd < 0)
        return NULL;
    if (ftruncate(*fd, sizeof(struct intent_page)) == 0 && fstat(*fd, &file) == 0) {
        void *m = mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        *inode = file.st_ino;
        if (m != MAP_FAILED)
            return m;
    }
    close(*fd);
    return NULL;
}

/* The memory in which this node's ranks talk; it costs what they use of it. Without it they talk through us: no
 * error. */
static void make_hall(struct plane *p)
{
    size_t bytes = hall_bytes(p->page, (uint32_t)p->agent.self);
    if (p->hall_fd >= 0)
        return;
    p->hall_fd = memfd_create("keel-hall", MFD_CLOEXEC);
    if (p->hall_fd >= 0 && ftruncate(p->hall_fd, (off_t)bytes) != 0)
        log_warn("the ranks of this node talk through their agent: %s", strerror(errno));
}

/* Tell the process who it is and hand it what it needs. */
static void welcome(struct plane *p, struct process *k, struct life life)
{
    struct agent *a = &p->agent;
    int intents_fd = -1, shm_fds[TP_SHM_FDS];
    struct tp_ep *ep;
    struct conn *c = ranks_conn(a, k->proc);
    make_hall(p);
    k->failure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!c || k->failure_fd < 0 || !(k->intents = make_intents(&intents_fd, &k->intents_inode)) ||
        tp_shm_create(p->shm, c, shm_fds, &ep) != KEEL_OK) {
        agent_break(a, "no memory to talk to a rank");
        return;
    }
    if (!counts_begin(p, life.rank, &k->intents->counters))
        log_warn("no memory to count what rank %d does", life.rank);
    struct control_welcome w;
    ranks_welcome(a, k->proc, life, ep, k->intents, &w);
    w.secure = p->config.settings->secure;
    w.range_base = p->config.settings->range.base;
    w.range_bytes = p->config.settings->range.bytes;
    snprintf(w.host, sizeof w.host, "%s", p->hosts.of[0]);
    for (int i = 1; i < p->hosts.n; i++)
        snprintf(w.more[i - 1], sizeof w.more[0], "%s", p->hosts.of[i]);
    snprintf(w.provider, sizeof w.provider, "%s", p->provider);
    int fds[WELCOME_FDS] = {p->page_fd,   intents_fd, shm_fds[0],
                            shm_fds[1],   shm_fds[2], p->hall_fd >= 0 ? p->hall_fd : p->page_fd,
                            k->failure_fd};
    send_packet(k, &w, sizeof w, fds, WELCOME_FDS);
    close(intents_fd);
    for (int i = 0; i < TP_SHM_FDS; i++)
        close(shm_fds[i]);
}

void procs_assign(void *user, struct proc *proc, struct life life)
{
    struct plane *p = user;
    struct process *k = proc ? of_proc(p, proc) : NULL;
    if (k)
        welcome(p, k, life);
    struct upcall *u = queue_upcall_new(p, k ? UPCALL_ASSIGNED : UPCALL_RESPAWN);
    if (!u)
        return;
    u->seat = k ? proc->id : -1;
    u->life = life;
    queue_upcall(p, u);
}

static void queue_seat(struct plane *p, enum upcall_type type, int seat)
{
    struct upcall *u = queue_upcall_new(p, type);
    if (!u)
        return;
    u->seat = seat;
    queue_upcall(p, u);
}

void procs_release(void *user, struct proc *proc)
{
    struct plane *p = user;
    struct process *k = of_proc(p, proc);
    if (!k)
        return;
    struct control r = {.type = CONTROL_RELEASE, .slot = proc->moves_to};
    send_packet(k, &r, sizeof r, NULL, 0);
    queue_seat(p, UPCALL_RELEASE, proc->id);
}

void procs_stay(void *user, struct proc *proc)
{
    queue_seat(user, UPCALL_STAY, proc->id);
}

void procs_overdue(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    if (proc && ranks_overdue(&p->agent, proc))
        queue_seat(p, UPCALL_END, c->seat);
}

/* ---- how it is ---- */

void procs_failed(void *user)
{
    struct plane *p = user;
    for (struct process *k = p->processes; k; k = k->next)
        if (k->failure_fd >= 0 && eventfd_write(k->failure_fd, 1) && errno != EAGAIN) /* full: it is readable */
            log_warn("pid %d is not told of a failure: %s", k->pid, strerror(errno));
}

/* "PID (NAME) STATE ..." with user and system time as the 11th and 12th field after the state. */
static unsigned state_of(const char *stat, uint64_t *ticks)
{
    const char *at = strrchr(stat, ')');
    char state;
    unsigned long long user_ticks, system_ticks;
    if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user_ticks,
                      &system_ticks) != 3)
        return PAGE_PROCESS_NONE;
    *ticks = user_ticks + system_ticks;
    return strchr("Tt", state)   ? PAGE_PROCESS_STOPPED
           : strchr("ZX", state) ? PAGE_PROCESS_NONE
           : state == 'D'        ? PAGE_PROCESS_WAITS
                                 : PAGE_PROCESS_RUNS;
}

unsigned procs_look_at(void *user, const struct proc *proc, uint64_t *ticks)
{
    const struct process *k = of_proc(user, proc);
    char path[64], stat[1024];
    if (!k)
        return PAGE_PROCESS_NONE;
    snprintf(path, sizeof path, "/proc/%d/stat", k->owner && k->fd >= 0 ? k->owner : k->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, stat, sizeof stat - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return PAGE_PROCESS_NONE;
    stat[n] = '\0';
    return state_of(stat, ticks);
}

/* ---- start and end ---- */

void procs_started(struct plane *p, const struct command *c)
{
    struct process *k = calloc(1, sizeof *k);
    struct proc *proc = ranks_started(&p->agent, c->seat);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = k};
    if (k)
        *k = (struct process){
            .proc = proc, .pid = c->pid, .door_fd = c->fd, .fd = -1, .handed_fd = -1, .owner_fd = -1, .failure_fd = -1};
    if (!k || !proc || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) != 0 || !entry_open(p, k)) {
        agent_break(&p->agent, "cannot watch a process");
        close(c->fd);
        free(k);
        return;
    }
    k->next = p->processes;
    p->processes = k;
    if (!life_is_none(c->life))
        welcome(p, k, c->life);
    else
        ranks_view_settled(&p->agent); /* a standby may be waited for */
}

void procs_exited(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    struct process *k = proc ? of_proc(p, proc) : NULL;
    if (!k)
        return;
    procs_readable(p, k); /* its last words come before its end */
    entry_shut(p, k);
    if (k->intents && atomic_load(&k->intents->moved) && c->code == 0) /* it may be to stay by now */
        ranks_moved(&p->agent, proc);
    else if (k->hidden)
        ranks_exited(&p->agent, proc, 0, k->signal);
    else if (proc->life.rank >= 0 && !p->agent.view.stopped && ends_job(p, proc, c->signal))
        ranks_ended_job(&p->agent, proc, 128 + c->signal);
    else
        ranks_exited(&p->agent, proc, c->code, c->signal);
}

void procs_moved(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    struct process *k = proc ? of_proc(p, proc) : NULL;
    if (!k)
        return;
    procs_readable(p, k); /* its last words come before its end */
    entry_shut(p, k);
    ranks_moved(&p->agent, proc);
}

void procs_forgotten(void *user, struct proc *proc)
{
    struct plane *p = user;
    struct process *k = of_proc(p, proc);
    if (!k)
        return;
    struct process **link = &p->processes;
    while (*link != k)
        link = &(*link)->next;
    *link = k->next;
    entry_shut(p, k);
    if (k->intents)
        counts_end(p, &k->intents->counters);
    if (k->intents)
        munmap(k->intents, sizeof *k->intents);
    if (k->failure_fd >= 0)
        close(k->failure_fd);
    free(k);
}

void procs_free(struct plane *p)
{
    while (p->processes)
        ranks_free(&p->agent, p->processes->proc);
}
