/* Keel: fault-tolerant one-sided communication. Everything a program needs; see docs/tutorial.md.
 * C89 and C++98 are enough, with stdint.h and stdbool.h; __extension__ keeps -pedantic quiet about bool. */
#ifndef KEEL_KEEL_H
#define KEEL_KEEL_H
#include <keel/collective.h>
#include <keel/failure.h>
#include <keel/grid.h>
#include <keel/group.h>
#include <keel/job.h>
#include <keel/keep.h>
#include <keel/message.h>
#include <keel/move.h>
#include <keel/mutex.h>
#include <keel/pattern.h>
#include <keel/rma.h>
#include <keel/segment.h>
#include <keel/shape.h>
#include <keel/signal.h>
#include <keel/status.h>
#include <keel/task.h>
#include <keel/type.h>
#include <keel/update.h>

/* Bytes of stack that a call takes of the thread that makes it, keel_init and the program's own functions (a callback,
 * an operation of a reduction) apart: a thread with PTHREAD_STACK_MIN and so much more may make every other one. Most
 * of it is what libfabric takes where the data go over it; with `--secure` it is less than half. The library has no
 * thread-local memory. */
#define KEEL_CALL_STACK (20 * 1024)
#endif
