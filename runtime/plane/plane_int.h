/* Inside of the plane: what surrounds the agent's data half (agent/agent.h) in a keeld. All threads, sockets, clocks
 * and mappings of the data half are here.
 *   plane.c      the data thread and its loop
 *   queue.c      what passes between the threads: commands to the data thread, upcalls to the event loop
 *   commands.c   what the data thread does with a command
 *   procs.c      this node's processes, from start to end
 *   procs_control.c, procs_welcome.c: what they say and are told, what they are handed when they become ranks
 *   entry.c      which process of those that a rank's program starts is the rank
 *   hidden.c     and how that one ends, where its script would not tell
 *   memory.c     the memory of copies
 *   waits.c      what the ranks wait for
 *   counts.c     what the ranks and this agent have counted
 *   blob.c       what a node tells the others before the start
 *   networks.c   the networks between nodes, before and after it is known which it is
 *   asked.c      what the data half asks for
 *   start.c      start and end */
#ifndef KEEL_PLANE_PLANE_INT_H
#define KEEL_PLANE_PLANE_INT_H

#include <pthread.h>

#include "detect/helper.h"
#include "pm/plane.h"
#include "runtime/agent/agent.h"
#include "runtime/base/json.h"
#include "runtime/plane/memory.h"

/* A process of this node: what the data half does not see of it. */
struct process {
    struct process *next;
    struct proc *proc; /* the data half's, NULL when that has forgotten it */
    int pid;
    int door_fd;   /* our end of KEEL_FD: who calls keel_init comes here (entry.c); -1 when closed */
    int fd;        /* control socket, -1 when closed */
    int handed_fd; /* its other end, until a process has it; else -1 */
    int owner;     /* the pid of that process; 0: none has come */
    int owner_fd;  /* readable when that has ended (base/kernel.h); -1: it is not watched, see hidden.c */
    bool left;     /* it has called keel_finalize */
    bool excused;  /* how it ends is its script's matter */
    bool mute;     /* its control socket is closed, and it was not ending then */
    bool hidden;   /* it has died, and the script is ended for it; */
    int signal;    /* of what: SIGNAL_HIDDEN, or a signal */
    struct intent_page *intents;
    uint64_t intents_inode;
    uint32_t asked; /* of intents->asked */
    int failure_fd; /* eventfd: the page has a new death; -1: not welcomed yet */
};

enum command_type {
    COMMAND_PROCESS_STARTED,
    COMMAND_PROCESS_EXITED,
    COMMAND_PROCESS_REFUSED,
    COMMAND_PROCESS_OVERDUE,
    COMMAND_PROCESS_LINGERS,
    COMMAND_PROCESS_MOVED,
    COMMAND_PROCESS_OUTPUT,
    COMMAND_SETS_STAY,
    COMMAND_MOVE_RANK,
    COMMAND_STOP_JOB,
    COMMAND_NEEDS_SETS,
    COMMAND_WRITES,
    COMMAND_PREPARE,
    COMMAND_COMMIT,
    COMMAND_SETTLED,
    COMMAND_HALT,
    COMMAND_REPORT,
    COMMAND_VERIFY,
    COMMAND_REBALANCE,
    COMMAND_MEET,
    COMMAND_QUIT,
};

struct command {
    struct command *next;
    enum command_type type;
    int seat, node, pid, fd, code, signal;
    struct life life;
    uint64_t epoch, value;
    uint64_t output[2]; /* COMMAND_PROCESS_OUTPUT */
    int n;
    struct view_event event[MEMBER_EVENTS_MAX];
    struct member_report report;
    char text[160];
    struct tp_addrs addrs; /* COMMAND_MEET */
};

/* A node that may become a member, or has. */
struct candidate {
    struct candidate *next;
    int node;
    uint64_t incarnation;
    struct tp_addrs addrs;
};

enum upcall_type {
    UPCALL_ASSIGNED,
    UPCALL_RESPAWN,
    UPCALL_VIEW,
    UPCALL_JOB_OVER,
    UPCALL_FATAL,
    UPCALL_EVENT,
    UPCALL_RELEASE,
    UPCALL_STAY,
    UPCALL_END,
    UPCALL_HERE,
    UPCALL_PLAIN_DEATH,
    UPCALL_HIDDEN_DEATH,
    UPCALL_VERIFIED,
    UPCALL_REBALANCED,
    UPCALL_WAITS,
    UPCALL_OUTPUT,
};

struct upcall {
    struct upcall *next;
    enum upcall_type type;
    int seat, code, pid;
    struct life life;
    uint64_t epoch;
    uint64_t output[2]; /* UPCALL_OUTPUT; epoch: its id, code: it begins */
    int *rank_node;
    bool *alive, by_loss;
    struct replica_loss loss[REPLICAS_MAX], in_vain[REPLICAS_MAX], *lost; /* lost [nlost] */
    int nlost, free, files;
    char *text;
};

struct plane {
    struct agent agent;
    struct plane_config config;
    struct plane_callbacks callbacks;
    struct helper *helper;
    struct tp *net, *shm;
    struct tp *device_net; /* until it is known whether all nodes have one */
    char provider[8];      /* of net */
    bool agent_made;
    struct page *page;
    size_t page_size;
    uint64_t incarnation;
    struct rail_hosts hosts; /* this node's own addresses */
    pthread_t thread;
    bool running;
    int epoll_fd, command_fd, wake_fd;
    int page_fd; /* the view page, read-only, to pass to ranks */
    int hall_fd; /* hall/hall.h, -1: not made yet */
    uint64_t spin_ns;
    /* data thread */
    bool here; /* a process of this node has called keel_init */
    bool out;  /* the others go on without this node */
    struct candidate *candidates;
    struct process *processes;
    struct memory_credit credit;
    uint64_t waits_at;     /* when to look again */
    char *waits;           /* as they were told last, NULL: none */
    uint64_t *waits_acked; /* [members] 1 + what it had acknowledged at the last look, if that was waited for; else 0 */
    int waits_asks;        /* that were due last time */
    unsigned waits_looks;
    uint64_t stop_deadline; /* job is over; tell the process half then at the latest */
    bool over_told;
    bool quit;
    /* between threads */
    pthread_mutex_t lock;
    struct command *commands, **commands_tail; /* under lock */
    _Atomic int command_waiting;
    struct upcall *upcalls, **upcalls_tail; /* under lock */
    struct counted *counted;                /* under lock */
};

/* plane.c */
void *plane_thread(void *arg); /* the plane */

/* queue.c */
/* Copies the command into the data thread's queue. Any thread. */
void queue_command(struct plane *p, const struct command *c);
/* Callbacks for the helper thread: each becomes a command. */
struct helper_callbacks queue_helper_callbacks(struct plane *p);
/* On the data thread. NULL if memory is out: the agent is then broken and will end. */
struct upcall *queue_upcall_new(struct plane *p, enum upcall_type type);
/* Gives the upcall to the event loop, which frees it. On the data thread. */
void queue_upcall(struct plane *p, struct upcall *u);
void queue_upcall_free(struct upcall *u);
/* What nobody will read any more; the threads have ended. */
void queue_free(struct plane *p);

/* One line of the event log: members as in struct agent_ops. On the data thread. */
/* members as json_go_on begins them, or "". */
void queue_event(struct plane *p, const char *name, const char *members);
void queue_event_members(struct plane *p, const char *name, const struct json_member *m, size_t count);
#define queue_event_of(p, name, ...) queue_event_members(p, name, J_ALL(__VA_ARGS__))
/* The agent must end. On the data thread. */
void queue_fatal(struct plane *p, const char *why);

/* commands.c; on the data thread */
/* What is in the queue, to be carried out (and freed) after all messages that had arrived when it was taken. */
struct command *commands_take(struct plane *p);
void commands_run(struct plane *p, struct command *first);
/* Tells the event loop, once, that the job is over. */
void commands_tell_over(struct plane *p);

/* procs.c and procs_control.c; all on the data thread */
void procs_started(struct plane *p, const struct command *c);
void procs_exited(struct plane *p, const struct command *c);
void procs_overdue(struct plane *p, const struct command *c);
void procs_lingers(struct plane *p, const struct command *c);
void procs_moved(struct plane *p, const struct command *c);
void procs_output(struct plane *p, const struct command *c);
void procs_readable(struct plane *p, struct process *k);
/* Take what processes say that they have asked since; true if one has. A look at memory, else nothing. */
bool procs_have_asked(struct plane *p);
void procs_free(struct plane *p);
/* What the data half asks for (struct agent_ops). */
void procs_answer(void *user, struct proc *proc, const struct control *reply, int64_t handle);
void procs_assign(void *user, struct proc *proc, struct life life);
void procs_release(void *user, struct proc *proc);
void procs_stay(void *user, struct proc *proc);
void procs_forgotten(void *user, struct proc *proc);
unsigned procs_look_at(void *user, const struct proc *proc, uint64_t *ticks);
void procs_failed(void *user);
/* A packet with descriptors on a socket; errno of a failure, 0: sent. */
int procs_send(int socket, const void *data, size_t len, const int *fds, int nfds);

/* hidden.c; on the data thread */
/* Another process than the one that we have started is the rank from now on. */
void hidden_begin(struct plane *p, struct process *k);
/* Has it ended meanwhile, and how? */
void hidden_look(struct plane *p, struct process *k);
/* Its control socket has been closed: it is about to end, has another program, or has closed what it had. */
void hidden_closed(struct process *k);
/* Has one that can say nothing any more another program by now? */
void hidden_mute(struct process *k);
void hidden_forget(struct plane *p, struct process *k);

/* networks.c */
struct blob;
/* With auto the devices (first, ofi_init.h) and tcp are opened; networks_choose says which of them it is when all nodes
 * have been heard. */
keel_status networks_open(struct plane *p, struct blob *b);
/* The devices, if all nodes have one. All come to the same result: all read the same. */
void networks_choose(struct plane *p, const struct plane_blob *blobs, int members);

/* asked.c */
struct agent_ops asked_ops(struct plane *p);

/* waits.c; on the data thread, in each round */
void waits_look(struct plane *p);

/* counts.c; on the data thread. From `begin` on a process's counts are read, and kept when it has ended. False: no
 * memory. */
bool counts_begin(struct plane *p, int rank, const struct counter_page *page);
void counts_end(struct plane *p, const struct counter_page *page);
void counts_free(struct plane *p);

/* entry.c; on the data thread */
/* A control socket that waits for a process to have it; false: there are no descriptors. Also in place of one whose
 * process has gone. */
bool entry_open(struct plane *p, struct process *k);
/* Take who has come. */
void entry_readable(struct plane *p, struct process *k);
/* The control socket; and nobody can come any more. */
void entry_close(struct plane *p, struct process *k);
void entry_shut(struct plane *p, struct process *k);
#endif
