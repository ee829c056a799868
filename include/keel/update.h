/* Direct access: a program that writes into its own part of a replicated segment by plain stores, at the address that
 * keel_address gives, changes the copy on its node only. These calls bring the stores to the other copies.
 *
 * Until then they are in one copy. If its node dies before the call that brings them has returned, they may be lost: in
 * each aligned 8-byte word the stores since the last such call, all of them or none; never what others put, accumulated
 * or swapped, and never half a word. If the rank alone dies nothing is lost of what stays in its node's copy, but a
 * later death of that node may still take back what the rank had not brought to the others.
 * A segment with KEEL_REDUNDANCY_NONE has one copy: there all of these do nothing.
 *
 * Each process brings its own part. What it stores into the part of another living process of its node
 * keel_update_flush_all brings, if the segment is tracked; until then it is in that node's copy only, and a strong get
 * of it may end in a time-out. No other call here does, nor says so, and keel_update_flush forgets of it: where all do
 * not meet, put it instead. While one calls keel_update_flush the others may store into their own parts, and flush.
 *
 * Where a process that died was writing to the caller's part, copies are made equal from one of them, and what is
 * stored there meanwhile may be overwritten: store after the next collective, which waits for that in a process that
 * has called keel_segment_track, keel_update_begin or keel_update_end; or within an update.
 *
 *  threads  any, except keel_segment_track.
 *  blocks   keel_update_begin, keel_update_end and keel_segment_track as keel_address does, and until this node's copy
 *           is the one that others are made equal
 *           to: at once but for a process that takes a dead one's place, which waits until the copies of its part are
 *           restored, and one that has moved before other ranks of its old node (keel/move.h), which waits until they
 *           have left that, too. What is stored before, at
 *           keel_address's place, may be overwritten with what another copy has; and what such a process stores before
 *           its first collective with what
 *           a flush of its neighbours brings of the dead one's.
 *  errors   KEEL_ERR_ARG, KEEL_ERR_STATE (before keel_init, or the node has no copy of the caller's part, and none is
 *           to come); those of keel_put. */
#ifndef KEEL_UPDATE_H
#define KEEL_UPDATE_H

#include <stddef.h>

#include <keel/segment.h>
#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program will store into these bytes of its part. *address (NULL is allowed) is where they are; it may be another
 * place than keel_address says, of the same memory, where stores cost nothing more than elsewhere. Until the end of the
 * update nobody else writes to the bytes: what others put there meanwhile may be overwritten by what was there before.
 * Ranges of one byte's length or of the whole part, several at a time, overlapping ones too. */
KEEL_MUST_CHECK keel_status keel_update_begin(keel_segment *segment, size_t offset, size_t len, void **address);
/* All copies have the bytes when it returns. Nothing needs to have been begun: a begun update that never ends is no
 * error. */
KEEL_MUST_CHECK keel_status keel_update_end(keel_segment *segment, size_t offset, size_t len);

/* For programs that cannot tell what they write: their stores through keel_address are found out, page by page, by
 * write protection. The first store to a piece of at least 64 KiB costs a signal (SIGSEGV; other signals of that kind
 * go to the handler that was there before) and a copy of the piece; where the system
 * has no mapping left to let it be written, the process ends with a line and SIGABRT. A get of Keel's may write there.
 * A system call of the program's (read(2), a receive of MPI's ...) fails with EFAULT where no store was before: give it
 * other memory. Call it once, after the allocation and before the segment is used in any other way by this process. The
 * caller's own part is watched, and those of ranks of its node that nobody runs any more; a second call does
 * nothing. */
KEEL_MUST_CHECK keel_status keel_segment_track(keel_segment *segment);
/* Bring the stores of this process since the last call into its own part, or into that of a rank of its slot that has
 * died and nobody runs, to all copies of the tracked segment, NULL: of all tracked segments: those
 * aligned 8-byte words that are not what they were before, and all words of a piece that was also written to by calls
 * of Keel since then (of this process or others: a word may be what it was, and not so in the other copies), or into
 * which another process of the node that tracks the segment had stored that has not brought it to the others (it may
 * have died, and this one have stored the same), or where a process of the node has ever begun an update. Other ranks
 * must not write to this part meanwhile by calls of Keel, nor store plainly into it: between two barriers, after
 * keel_fence_all and with no handle open. Stores of other threads wait until it returns. On an error the words stay
 * noted, and the next call tries again. A segment that is not tracked has nothing to bring.
 * blocks    as keel_put. */
KEEL_MUST_CHECK keel_status keel_update_flush(keel_segment *segment);
/* The same, and what this process has stored into the parts of living ranks of its node, and what ranks of the node had
 * stored that are known to be dead. Between two meetings of all who store there: other processes of the node neither
 * store into the segment nor write to it meanwhile, but may call this.
 * blocks    as keel_put. */
KEEL_MUST_CHECK keel_status keel_update_flush_all(keel_segment *segment);

#ifdef __cplusplus
}
#endif
#endif
