/* What this node's processes and their agent say to each other over control sockets. */
#include "runtime/plane/procs_int.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"

int procs_send(int socket, const void *data, size_t len, const int *fds, int nfds)
{
    struct iovec iov = {(void *)data, len};
    union {
        char bytes[CMSG_SPACE(PROCS_WELCOME_FDS * sizeof(int))];
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

void procs_send_packet(struct process *k, const void *data, size_t len, const int *fds, int nfds)
{
    int error = k->fd >= 0 ? procs_send(k->fd, data, len, fds, nfds) : 0;
    if (error && error != EPIPE) /* EPIPE: it has just ended */
        log_warn("pid %d does not take control messages: %s", k->pid, strerror(error));
}

void procs_answer(void *user, struct proc *proc, const struct control *reply, int64_t handle)
{
    struct process *k = procs_of(user, proc);
    int fd = (int)handle;
    if (k)
        procs_send_packet(k, reply, sizeof *reply, &fd, handle >= 0);
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

/* The event loop has its pipes. */
static void ask_output(struct plane *p, const struct proc *proc, const struct control *r)
{
    struct upcall *u = queue_upcall_new(p, UPCALL_OUTPUT);
    if (!u)
        return;
    u->seat = proc->id;
    u->epoch = r->id;
    u->code = r->begins == 1;
    u->output[0] = (uint64_t)r->a;
    u->output[1] = (uint64_t)r->b;
    queue_upcall(p, u);
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
        else if (r.type == CONTROL_OUTPUT)
            ask_output(p, k->proc, &r);
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
