/* The thread that waits for deaths, of the process's instance. */
#ifndef KEEL_CLIENT_JOB_NOTIFY_H
#define KEEL_CLIENT_JOB_NOTIFY_H

/* fd: the agent's eventfd, from now on ours. */
void notify_init(int fd);
/* No callback after this, but for one that this is called from. */
void notify_fini(void);
/* In a fork's child, which has no such thread; the descriptors stay open. */
void notify_forget(void);
#endif
