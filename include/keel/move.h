/* Ranks that live and go to another node: where nodes stand on a grid (`keelrun --grid`) a line of them moves by one
 * when a node dies. A program whose processes can be started again (keel_restarted) need not know of it: a rank that is
 * to move ends, with everything of it complete, at the end of its next barrier, broadcast or reduction of all live
 * ranks, or when it asks for its next task; and begins on the other node as if it had died there, which nobody counts
 * as a failure. What it has printed is written, but nothing of the program's is run at its end (atexit, destructors).
 * Where a task is open, a mutex is held or waited for, a request is not waited for, a message that has come is not
 * received, or a stored word of a tracked segment is not flushed, it goes on to the next such point.
 *
 * A rank that comes to no such point within KEEL_LEAVE_MS milliseconds (10 000, of the agents' environment) is ended
 * where it is; one that has come to it may take as long as it likes with what it does then, as a program does that
 * was told to go, calls keel_finalize, and writes what it has. The former is a line `made_to_leave` in the event log:
 * what it had begun is then in doubt as with a death.
 * The memory of ranks that were on one node follows the last of them: one that has moved waits for the others where it
 * wants to store into its part (keel/update.h). So those of a node go at the end of the same collective, the next one
 * that none of them has completed; who comes to none for a second goes where it can.
 * Messages that it has not received by its end are lost, as with a death. Rank 0 has standard input from its beginning
 * where it begins again, as after a death (keelrun --stdin-keep). A program several threads of which call Keel may end
 * in the middle of what the others do; it had better choose. */
#ifndef KEEL_MOVE_H
#define KEEL_MOVE_H

#include <stdbool.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_moving {
    KEEL_MOVE_BY_ITSELF, /* as said above */
    KEEL_MOVE_ASK        /* no call ends the process but keel_move */
} keel_moving;

/* How ranks of this process's program move; KEEL_MOVE_BY_ITSELF until it is called. Where that counts, call it before
 * the first collective.
 * threads   any.
 * blocks    no.
 * errors    KEEL_ERR_ARG; KEEL_ERR_STATE. */
KEEL_MUST_CHECK keel_status keel_move_mode(keel_moving mode);

/* Is this rank to go to another node, and has it come to the collective behind which it goes with the others of its
 * node? Then the program ends the process soon, by keel_move, or, with KEEL_MOVE_ASK, by keel_finalize and an exit with
 * 0, which is the same once this call has returned true. It may become false again: nodes die, and the plan is another
 * one. Then keel_finalize is the end of this process all the same, and the rank
 * begins again where it was; unless keel_move has said that it is not to move: then keel_finalize is the rank's end.
 * One atomic load while nobody is to go.
 * threads   any.
 * blocks    no. */
__extension__ bool keel_move_pending(void);

/* A point at which the rank may move, in any mode: if it is to, the process ends here as is said above and the call
 * does not come back. With nothing to move it costs what keel_move_pending does.
 * threads   one; the others make no calls meanwhile.
 * blocks    if it is to move, as keel_finalize.
 * errors    KEEL_ERR_STATE: it is not to move, or must go on to another point, as something is open; go on. */
keel_status keel_move(void);

#ifdef __cplusplus
}
#endif
#endif
