/* KEEL_TRACE_CALLS=FILE: which calls of Keel's the program makes, how often, and how long it is in them. A wrapper
 * (calls.h). */
#ifndef KEEL_CLIENT_API_TRACE_H
#define KEEL_CLIENT_API_TRACE_H

/* In keel_init, when the process is a rank. Without the variable it does nothing. */
void trace_begin(int rank);
/* The process ends by _exit: what is written at exit is written. */
void trace_end(void);
/* In a fork's child: the counts are its parent's. */
void trace_forget(void);
#endif
