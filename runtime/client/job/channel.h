/* The process's control socket to its agent (wire/control.h). */
#ifndef KEEL_CLIENT_JOB_CHANNEL_H
#define KEEL_CLIENT_JOB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <keel/status.h>

#include "runtime/net/shm/shm.h"
#include "runtime/wire/control.h"

struct page;

enum { CHANNEL_FDS = 4 + TP_SHM_FDS }; /* descriptors that come with a welcome */

/* fd becomes the channel's. */
void channel_open(int fd);
bool channel_is_open(void);
/* In a fork's child: the socket is closed, and a lock that was another thread's is nobody's. */
void channel_forget(void);
/* One packet with up to max descriptors; its length, 0 if the agent is gone, -1 if none came in time. */
ssize_t channel_receive(void *buf, size_t len, int *fds, int max, int timeout_ms);
/* A node that does not answer is waited for until it can have been declared dead. page: NULL is allowed. */
unsigned long channel_patience_ms(const struct page *page);
/* A line of the event log, of the library's; a text that is too long is cut. blocks   while the agent has not read
 * those before. */
void channel_event(const char *name, int64_t number, const char *text);
/* Of struct client_env. */
bool channel_tell(void *user, const struct control *r);
keel_status channel_request(void *user, struct control *r, void **memory);
bool channel_is_gone(void *user);
#endif
