/* Frames between keelrun and an agent, and between keelctl and an agent. docs/protocols/launch.md has the dialogue.
 * "json" bodies are one JSON object; integers in binary bodies are 4 bytes, little endian. */
#ifndef KEEL_PM_MESSAGE_H
#define KEEL_PM_MESSAGE_H

enum message {
    /* agent -> keelrun */
    MSG_HELLO = 1, /* json: version, node, pid, stub_pid, hostname */
    MSG_READY = 2, /* json: round, blob (base64), host, port: the plane and the agent listen */
    MSG_OUTPUT =
        3, /* node, rank (-1: the agent itself or an idle spare), stream (1 out, 2 err), bytes; see OUTPUT_WINDOW */
    MSG_EVENT = 4, /* one JSON line for the event log */
    /* json: epoch, rank_node [..], alive [..]; with replicas sets [..]: null, or rank (native), node, signal, code of
     * who was lost first */
    MSG_VIEW = 5,
    MSG_FAILED = 7,      /* json: code, why: this node cannot take part; the job cannot start */
    MSG_OVER = 8,        /* json: code, why, own: the job is over, this node's processes are gone, all output was sent;
                          * own: why is what this node alone knows, better than what others say */
    MSG_STDIN_TAKEN = 9, /* incarnation; count: bytes of MSG_STDIN that this process of rank 0 took (flow control) */
    MSG_PONG = 10,
    MSG_HERE = 11,     /* a process of this node has called keel_init */
    MSG_ENDED = 12,    /* json: rank, pid, code, signal: a rank's process ended while the job runs */
    MSG_BEGUN = 13,    /* json: rank, pid, incarnation: a rank goes on in a new process of this node */
    MSG_LAUNCHED = 14, /* json: node, pid: the launcher for it runs; node, why: it has ended */
    MSG_WAITS =
        16, /* json: as in pm/wire/waits.h: what this node's ranks wait for, when that changes; {}: for nothing */
    MSG_LOST = 15, /* json: bytes: output that was not kept while keelrun was out of reach for too long */

    MSG_MET = 17, /* json: node: it is known here where that one is; of itself: it runs; why: that cannot be
                      used; taken: another node was born under its number */

    /* json: rank (native), out, err, epoch: what its process writes from here on begins at these bytes of what the rank
     * writes to standard output and error: its set has begun anew, and has joined in that view or before */
    MSG_PLACE = 19,

    /* json: host: it starts a new node, and wants a number; node, blob, host, port: where that is; node, why: it does
     * not come */
    MSG_ADDS = 18,

    /* keelrun -> agent */
    MSG_CONFIG = 32, /* json: the job; see launch.md. Again, with another round, if a node did not come */
    MSG_START = 33,  /* json: blobs [base64 ..], peers [{host, port} ..], in node order, null: not known */
    MSG_STDIN = 34,  /* incarnation; bytes for this process of rank 0, none: end of file */
    /* json: code, why, hard, signal: end the job; hard: at once, no grace; signal: what ranks get before (SIGTERM) */
    MSG_STOP = 35,
    MSG_TAKEN = 36,   /* stream, count: bytes of MSG_OUTPUT that were written, or will be soon */
    MSG_BYE = 37,     /* the launcher has everything: go */
    MSG_PING = 38,    /* answered by MSG_PONG */
    MSG_LAUNCH = 40,  /* json: node, launcher, program, way, host, id, key, from: start another node's agent */
    MSG_FAULT = 41,   /* json: rank, signal, again: it crashed for good, which the job's end has to say */
    MSG_MEET = 42,    /* json: node, blob, host, port: a node that comes later; answered by MSG_MET */
    MSG_NUMBER = 43,  /* json: node, console: of the one that it adds; why: there is none */
    MSG_STANDBY = 39, /* the program is Keel's: on spares, start the processes that wait */

    MSG_INPUT = 44,     /* byte: enum input_read */
    MSG_STDIN_CUT = 45, /* incarnation: this process of rank 0 does not get its input again */

    /* both ways between keelrun and an agent (pm/wire/dialogue.h), and how a connection is made again */
    MSG_ACK = 80,     /* count (8 bytes): frames that have been received */
    MSG_RESUME = 81,  /* agent -> keelrun, json: node, console, received: it goes on here */
    MSG_RESUMED = 82, /* keelrun -> agent, json: received */
    MSG_SIGNAL = 83,  /* keelrun -> agent, json: signal: for each rank; TSTP and CONT stop and continue all processes */
    MSG_RETURN =
        85, /* agent -> keelrun, json: version, node, console, pid: it was put out as that node, and comes back */
    MSG_REFUSED = 84, /* keelrun -> agent, json: why: it is not part of the job */

    /* agent -> agent: MSG_MEET, answered by MSG_MET; and to one that it adds what keelrun says until MSG_START, which
     * answers as ever, and says MSG_MET of itself when a view has it */

    /* agent -> agent at the PMI root, and back (pm/pmi_root.h) */
    MSG_PMI_FENCE = 48,   /* json: node, set, round, kvs {..}: this node's ranks are in the PMI barrier */
    MSG_PMI_RELEASE = 49, /* json: set, round, kvs {..}: all nodes are; what all have put */

    /* keelctl -> agent (unix socket of the same user) */
    MSG_ASK_STATUS = 64, /* answered by MSG_STATUS */
    MSG_ATTACH = 65,     /* answered by recent MSG_OUTPUT, then all that follows, then MSG_OVER */
    MSG_VERIFY = 67,     /* answered by MSG_VERIFIED: compare the copies of all segments, on all nodes */
    MSG_ADD = 70,        /* json: host, position, both may be left out: start a new node; answered by MSG_ADDED */
    MSG_MOVE = 69, /* json: rank, node: a rank of this node is to go on there. For tests: keelctl has no verb for it */
    /* json: seconds (0: as long as the job has run); answered by MSG_REBALANCED: should ranks that live move? then they
     * do */
    MSG_REBALANCE = 72,
    /* agent -> keelctl */
    MSG_STATUS = 66,     /* json */
    MSG_ADDED = 71,      /* json: node, place (not without a grid): it is a member; or code, why */
    MSG_VERIFIED = 68,   /* json: result (equal, differs, busy), and where; keelctl(1) */
    MSG_REBALANCED = 73, /* json: result (moves, stays, unknown, under_way, not_auto), and why; keelctl(1) */
};

enum {
    STDIN_WINDOW = 256 * 1024, /* bytes of MSG_STDIN that may be on their way */
    /* Bytes of MSG_OUTPUT of a stream (without headers) that an agent may send before MSG_TAKEN gives some back: so
     * keelrun never has to stop listening when its reader does. A process that ends has no more than a pipe holds, and
     * that is sent whatever the window says. CONFIG may make it larger, as the number of nodes allows. */
    OUTPUT_WINDOW = 64 * 1024,
    OUTPUT_WINDOW_MAX = 1024 * 1024,
    OUTPUT_HEADER = 12,
};

/* How much of standard input keelrun has read. */
enum input_read {
    INPUT_NONE,
    INPUT_SOME,
    INPUT_SOME_ONCE, /* and no process of rank 0 needs it again (--stdin-keep 0) */
};

/* For agents and ranks. libfabric brings libraries that catch SIGSEGV and others when they are loaded, write a file
 * into the working directory and end the program with 1: a crash would look like a program's own decision. */
#define NO_BACKTRACE_IPATH "IPATH_NO_BACKTRACE=1"
#define NO_BACKTRACE_HFI "HFI_NO_BACKTRACE=1"
/* Unix socket of an agent, in the abstract namespace (no file to leave behind): this, job id (16 hex digits), "/",
 * node; and "." with 16 random hex digits where somebody else has that name. */
#define CONSOLE_PREFIX "keel/"
#endif
