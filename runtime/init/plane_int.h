/* Inside of the plane: the data thread's own state (struct plane) and the parts it is made of.
 *   plane.c      the thread and its loop
 *   queue.c      what passes between the threads: commands to the data thread, upcalls to the event loop
 *   commands.c   what the data thread does with a command
 *   conns.c      connections of ranks and agents, and what comes over them
 *   procs.c      this node's processes: control sockets, joining, barriers, intents
 *   start.c      start and end */
#ifndef KEEL_INIT_PLANE_INT_H
#define KEEL_INIT_PLANE_INT_H

#include <pthread.h>

#include "collectives/barrier.h"
#include "detect/helper.h"
#include "pm/plane.h"
#include "runtime/core/collective_slot.h"
#include "runtime/core/control.h"
#include <keel/segment.h>

#include "runtime/redundancy/agent.h"

enum { PLANE_BATCH = 64 };

/* A process of this node. */
struct proc {
    struct proc *next;
    int slot; /* of the process half */
    int pid;
    int fd;   /* control socket, -1 when closed */
    int rank; /* -1: standby */
    uint32_t incarnation;
    bool exited;
    struct conn *conn; /* its shared-memory connection */
    struct intent_page *intents;
    uint64_t entered;  /* last barrier instance entered */
    bool entering;     /* waits for the answer */
    struct wire enter; /* the request to answer */
};

/* A rank waits until all nodes know a segment. */
struct seg_wait {
    struct seg_wait *next;
    int slot; /* of the process */
    uint32_t id;
    uint32_t seg;
};

enum command_type {
    COMMAND_PROCESS_STARTED,
    COMMAND_PROCESS_EXITED,
    COMMAND_STOP_JOB,
    COMMAND_PREPARE,
    COMMAND_COMMIT,
    COMMAND_SETTLED,
    COMMAND_HALT,
    COMMAND_REPORT,
    COMMAND_QUIT,
};

struct command {
    struct command *next;
    enum command_type type;
    int slot, rank, pid, fd, code, signal;
    uint32_t incarnation;
    uint64_t epoch, value;
    int n;
    struct view_event event[MEMBER_BATCH_MAX];
    struct member_report report;
    char text[160];
};

enum upcall_type {
    UPCALL_ASSIGNED,
    UPCALL_RESPAWN,
    UPCALL_VIEW,
    UPCALL_JOB_OVER,
    UPCALL_FATAL,
    UPCALL_EVENT,
    UPCALL_HERE,
    UPCALL_PLAIN_DEATH
};

struct upcall {
    struct upcall *next;
    enum upcall_type type;
    int slot, rank, code;
    uint32_t incarnation;
    uint64_t epoch;
    int *rank_node;
    bool *alive;
    char *text;
};

struct plane {
    struct agent agent;
    struct plane_config config;
    struct plane_callbacks callbacks;
    struct helper *helper;
    struct tp_addr addr;
    char host[64];
    pthread_t thread;
    bool running;
    int epoll_fd, command_fd, wake_fd;
    int page_fd; /* the view page, read-only, to pass to ranks */
    uint64_t spin_ns;
    /* data thread */
    struct proc *procs;
    bool here; /* a process of this node has called keel_init */
    struct seg_wait *seg_waits;
    uint64_t **announced;  /* [STORE_SEGMENTS_MAX] -> [members] stream positions of this node's WIRE_SEGMENT, or NULL */
    uint64_t *rank_joined; /* [ranks] barrier value with which the rank's incarnation joins */
    uint32_t *rank_started; /* [ranks] 1 + incarnation that was started on this node, 0: none */
    uint64_t join_instances, join_collectives;
    uint64_t stop_deadline; /* job is over; tell the process half then at the latest */
    bool over_told;
    bool quit;
    struct tp_event batch[PLANE_BATCH];
    int batch_n, batch_at;
    uint64_t rejected;
    bool enter_due; /* a barrier instance was completed: ranks may be waiting for the next one */
    /* between threads */
    pthread_mutex_t lock;
    struct command *commands, **commands_tail; /* under lock */
    _Atomic int command_waiting;
    struct upcall *upcalls, **upcalls_tail; /* under lock */
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

/* commands.c; on the data thread */
/* Carries out what is in the queue; true if something was. messages: some have arrived and are not handled yet; what is
 * to come after them stays in the queue. */
bool commands_run(struct plane *p, bool messages);
/* Tells the event loop, once, that the job is over. */
void commands_tell_over(struct plane *p);

/* conns.c; on the data thread */
/* Takes a batch of events from the transport and deals with it; returns their number. */
int conns_poll(struct plane *p, struct tp *tp);
struct peers_ops conns_peers_ops(struct plane *p);
struct barrier_ops conns_barrier_ops(struct plane *p);

/* procs.c; all on the data thread */
void procs_started(struct plane *p, const struct command *c);
void procs_exited(struct plane *p, const struct command *c);
void procs_readable(struct plane *p, struct proc *proc);
void procs_view_committed(struct plane *p, uint64_t value);
void procs_view_settled(struct plane *p);
void procs_acked(struct plane *p);
void procs_barrier_complete(struct plane *p, uint64_t instance);
void procs_try_enter(struct plane *p);
void procs_free(struct plane *p);
/* A barrier request of a local rank. */
void node_enter(struct agent *a, struct conn *c, const struct wire *w);
struct proc *procs_of_conn(struct plane *p, const struct conn *c);
#endif
