/* The raw limits of this machine, for benchmarks that print a ratio beside them in the same run: libfabric without
 * anything around it (same provider, same FI_DELIVERY_COMPLETE, same style of progress as the runtime), plain memory,
 * and one cache line between two processes.
 *
 * Targets are child processes that spin. They are paused (SIGSTOP) except while a raw_* function measures with them, so
 * that on a small machine they do not take the cores of what they are compared with. Start them before any thread. */
#ifndef KEEL_BENCH_RAWLIB_H
#define KEEL_BENCH_RAWLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAW_TARGETS_MAX = 2, RAW_BATCHES = 15 };

struct raw;

/* Fork `targets` children listening on host and connect to them over the provider; NULL with a line on stderr if that
 * is not possible. */
struct raw *raw_start(const char *host, const char *provider, int targets, size_t memory);
/* Ends and reaps the children. */
void raw_stop(struct raw *raw);

/* Medians over RAW_BATCHES batches of iters operations, in microseconds an operation, one at a time. */
double raw_write_us(struct raw *raw, size_t size, int iters);
double raw_read_us(struct raw *raw, size_t size, int iters);
/* Request and answer of `size` bytes each, as messages. */
double raw_message_us(struct raw *raw, size_t size, int iters);
/* Two writes posted together, one to each of two targets, until both are delivered. */
double raw_pair_us(struct raw *raw, size_t size, int iters);
/* Writes with `outstanding` in flight: thousands a second. */
double raw_write_kops(struct raw *raw, size_t size, int outstanding, int iters);
/* One batch of the above, for callers that interleave batches of two systems and take medians themselves. */
double raw_write_batch_us(struct raw *raw, size_t size, int iters);
double raw_read_batch_us(struct raw *raw, size_t size, int iters);
double raw_write_batch_kops(struct raw *raw, size_t size, int outstanding, int iters);

/* Thousands of answers a second: so many processes ask one server, each over a TCP connection of its own, and wait; for
 * us microseconds. Shadowed: what the server finds together it sends to a second one, all in one message, and answers
 * when that has sent `bytes` back. 0: it could not be measured. */
double raw_crowd_kops(int clients, size_t bytes, double us, bool shadowed);

/* Two processes begin to send so many bytes to each other and to store them, as agents do that fill copies. NULL:
 * they could not be made. */
struct raw_fill;
struct raw_fill *raw_fill_start(size_t bytes);
/* Both are at it. */
bool raw_fill_runs(struct raw_fill *f);
/* GB/s, both together; when they are through. */
double raw_fill_end(struct raw_fill *f);

/* Puts of n pieces of len bytes each, of at most `bytes` in all, by plain sockets: sent and stored as one piece; copied
 * once more at each end than the kernel does; stored where they belong by the kernel. A child serves them, which sleeps
 * in between; one at a time. Pieces of at most 128 KiB. NULL: it could not be started. */
enum raw_way { RAW_WHOLE, RAW_COPIED, RAW_SCATTERED, RAW_WAYS };
struct raw_pieces;
struct raw_pieces *raw_pieces_start(size_t bytes);
/* Microseconds a put, one after the other. */
double raw_pieces_us(struct raw_pieces *p, enum raw_way way, size_t len, size_t n, int times);
void raw_pieces_stop(struct raw_pieces *p);

/* Nanoseconds: a call of a function that is not inlined and stores 8 bytes. */
double raw_store_call_ns(void);
/* Nanoseconds for one memcpy of size bytes, source and destination walking through much more than the caches if cold.
 */
double raw_memcpy_ns(size_t size, bool cold);
/* Nanoseconds there and back for one cache line between two processes. */
double raw_pingpong_ns(void);

/* All TCP sockets of this process have what Keel's have: no congestion control that paces (docs/adr/0020). */
void raw_unpaced(void);

double raw_median(double *values, int count);
/* Iterations that make a batch of about 10 ms if one takes us microseconds. */
int raw_iters(double us);
double raw_now_us(void);
#endif
