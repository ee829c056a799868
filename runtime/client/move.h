/* Points of a program at which a rank may end on one node so that its next life begins on another one: the end of a
 * collective of all live ranks, which begins with a fence, and the moment before a task is drawn. What a rank holds in
 * its own memory is lost when it moves, so that programs whose processes can be started again are those that can be
 * moved.
 *
 * A point is passed by while something is open that only this process can go on with: a task, a mutex, an unfinished
 * call, a request of a group's, a message that the program has not received. Then the next one counts; and where none
 * comes in time the process is ended wherever it is, which is as if it had died (ADR 0170). Before the collective at
 * whose end all ranks of its slot go (wire/leave.h) no point counts. */
#ifndef KEEL_CLIENT_MOVE_H
#define KEEL_CLIENT_MOVE_H

#include "runtime/client/client.h"

/* The rank was released and has come to such a point: it is counted, and the owner of the client told, unless the
 * program wants to choose or something is open. */
void move_point_reached(struct client *c);
/* Is the rank asked to go, and has it come to where it goes with the others of its slot? */
bool move_is_due(struct client *c);
/* Is nothing open? */
bool move_may(struct client *c);
/* The process ends here: nothing of it is under way any more, and nobody waits for what it has sent. Then, if the
 * result is true, the lock is held, and the caller has the program end, move_ended last. False: the agent has taken it
 * back, or the job is lost; the process goes on. blocks   until what it has begun and sent has arrived, which others
 * take inside their calls. */
bool move_go(struct client *c);
void move_ended(struct client *c);
/* In keel_finalize: is it the end of this process only, as the program was told that the rank is to move? Also where
 * the agent has taken that back meanwhile; then the rank begins again where it was. From now on nobody takes it back;
 * and where it is the rank's end nobody asks it to move, or ends it for that. */
bool move_ends_process(struct client *c);
/* Of a process that ends so: nothing that it has begun is under way. From now on nobody ends it for taking long. */
void move_is_out(struct client *c);

/* In a thread of the program that holds no lock of the client's. One load where nothing moves, of a line that nobody
 * writes then. */
static inline void move_point(struct client *c)
{
    if (atomic_load(&c->intents->released)) /* read after what it has written of its collectives (wire/leave.h) */
        move_point_reached(c);
}
#endif
