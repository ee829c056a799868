/* This process ends so that its rank goes on in a new one, on another node (move.h). */
#ifndef KEEL_CLIENT_JOB_MOVING_H
#define KEEL_CLIENT_JOB_MOVING_H

/* At a point of the program where it may: what it has printed is on its way, and the process ends. Comes back if it
 * stays: it is not to go any more, or it has stored plainly into tracked segments what the other copies lack, which
 * only the program can bring there, as nobody else may write there meanwhile. user: unused. blocks as keel_finalize. */
void moving_go(void *user);
#endif
