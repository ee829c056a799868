/* System calls that older kernels do not have (RHEL 8: close_range, pidfd_open, epoll_pwait2), or that a container's
 * filter refuses (EPERM, as old versions of Docker's do): what they do, with and without them. Nothing else of Keel
 * makes a call of a new kernel. */
#ifndef KEEL_BASE_KERNEL_H
#define KEEL_BASE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/* epoll_wait with a limit in nanoseconds. */
int kernel_epoll_wait(int epoll_fd, struct epoll_event *events, int max, uint64_t timeout_ns);

/* read, of what is there now: -1, EAGAIN if that is nothing, whatever the descriptor's flags are. Where the kernel, or
 * what is behind the descriptor, knows no such read it is a plain one. */
ssize_t kernel_read_now(int fd, void *buffer, size_t len);

/* All descriptors from first on are closed, or closed by exec. Async-signal-safe. False: errno says why. */
bool kernel_close_from(int first, bool by_exec);

/* A descriptor that is readable when the process has ended, its exit code taken or not. -1: errno says why; ESRCH:
 * there is no such process. Without pidfds a thread of ours waits for it. */
int process_open(pid_t pid);
/* Has it? Where a thread waits for it the descriptor may say so later. */
bool process_has_ended(int process);
/* How the process, which has ended, did, as waitpid says it; false: this kernel (before 6.15) does not say, or not any
 * more. */
bool process_end(int process, pid_t pid, int *status);
/* Is the process on its way to its end? Not: it has another program, by exec, or runs as before. */
bool process_ending(pid_t pid);
/* Has it this file, a memfd, in its memory? False also where /proc does not say. */
bool process_maps(pid_t pid, uint64_t inode);
/* Like kill. Never to another process that has the number by now. */
int process_signal(int process, int signal_number);
/* Takes -1. */
void process_close(int process);
#endif
