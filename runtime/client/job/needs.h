/* What the program needs of its processes (needs.c). */
#ifndef KEEL_CLIENT_JOB_NEEDS_H
#define KEEL_CLIENT_JOB_NEEDS_H

/* keel_init has its welcome: what was said before is told. */
void needs_begin(void);
/* The socket to the agent before keel_init, by which keelrun's processes are started; -1: there is none. */
int needs_control_fd(void);

#endif
