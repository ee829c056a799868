/* Kept memory: a rank's own memory, which its next process finds again. A program registers what it wants to keep, says
 * at the end of each step of its work that a new version is to be made, and begins, in whatever process, with the
 * version that there is:
 *
 *     keel_init(); keel_segment_alloc(...); ...
 *     keel_keep_room(bytes);
 *     keel_keep("field", field, bytes);
 *     keel_keep_restore(&step, NULL);        // 0 at the start of the job
 *     for (step++; step <= steps; step++) {
 *         ...                                // one step of the work
 *         keel_keep_commit(step);            // the last thing in it
 *     }
 *
 * Versions lie in a segment of the library's, two of them, with as many copies as the most copied segment that was
 * allocated before keel_keep_room, and two at least: they survive the nodes that the segments survive. A rank that
 * dies, or is moved (in a keel_keep_commit nothing of it is lost, and that is the place for it), begins again with its
 * own last version, and the others go on: they wait for it in the next collective. What it had computed since is
 * computed again, so a step that is done twice must come to the same: it puts the same values, and reads what the
 * others still have as it was. Collectives of all live ranks count (keel_resume): one that a step has beside its
 * keel_keep_commit is not done twice by the others, and keel_keep_restore says how many of them there were.
 *  threads   one of a rank at a time makes these calls; nobody else changes the memory that is registered meanwhile.
 *  errors    KEEL_ERR_ARG; KEEL_ERR_STATE: before keel_init or keel_keep_room, inside a task, or while another
 *            collective of all live ranks is not over; those of keel/rma.h, also where they are not named.
 *            KEEL_ERR_DATA_LOST: all nodes with copies of what a rank has kept have died; a line says which rank's. */
#ifndef KEEL_KEEP_H
#define KEEL_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over all live ranks, once, in the order of their allocations: room for bytes_per_rank kept bytes of each
 * rank, of which each range takes its size rounded up to a multiple of 64. As keel_segment_alloc of twice as much, it
 * takes memory as it is written to. A restarted rank calls it again, in the order of its segments.
 * blocks    as keel_segment_alloc.
 * errors    as keel_segment_alloc; KEEL_ERR_STATE at the second call. */
KEEL_MUST_CHECK keel_status keel_keep_room(size_t bytes_per_rank);
/* From now on these bytes of the process's own memory are kept under this name. Local; ranks may keep different things.
 * A name again: its bytes lie there from now on (two arrays that change places), or have that size. What is kept of a
 * version is what was registered when it was made.
 * name      1 to 47 bytes, copied.
 * address   the caller's, and readable and writable for as long as it is registered; NULL with 0 bytes: the name is not
 *           kept any more.
 * blocks    no; it looks through the list of the process's mappings up to there, which took some 20 us, and 4 ms in a
 *           process with 10,000 of them.
 * errors    KEEL_ERR_ARG with a line on standard error: a bad name, or memory that the process does not have, or, where
 *           /proc is mounted, may not read or write to now (memory that is shared: may not read);
 *           KEEL_ERR_LIMIT: there is no room for so much, or 63 names are registered. */
KEEL_MUST_CHECK keel_status keel_keep(const char *name, void *address, size_t bytes);
/* Collective over all live ranks: what is registered, as it is now, is a version, in place of the last one. It begins
 * with a keel_fence_all, and is a barrier: it counts as one in keel_resume. Who returns knows that all who live have
 * made the version; whoever dies in it begins with this version or with the one before.
 * Of memory of which the last two versions were made by this process, at the same place and with the same names and
 * sizes, only those pages of 4096 bytes travel that have changed since the version before the last; all of it is read.
 * Everything travels in a process's first two commits, after a change of names or sizes, and while the rank runs on a
 * node that has no copy of its part.
 * version   the program's number, greater than the last one, the same on all ranks.
 * blocks    until all copies have it and every live rank has called.
 * errors    what keel_fence_all, or writing, tells this rank: it has not entered, and the others wait until it calls
 *           again; the version before is still there. KEEL_ERR_MISMATCH on all: the versions differ, or others make
 *           another call; this version counts for nobody then, but for a rank whose process dies before it returns
 *           here. KEEL_ERR_TIMEOUT as keel_barrier: the same call goes on. KEEL_ERR_STATE also: this process
 *           has taken a rank over, and has not called keel_keep_restore. */
KEEL_MUST_CHECK keel_status keel_keep_commit(uint64_t version);
/* keel_keep_commit of the version, which is then written to files with all segments that all ranks have allocated, as
 * they are in this moment: nobody goes on before it is done. A later job of as many ranks, on as many nodes or others,
 * begins with them (keelrun --restore FOLDER): it allocates the same segments in the same order, and calls
 * keel_keep_restore. Mutexes, task pools and segments of groups are not saved. All segments should have been allocated
 * before keel_keep_restore, where a process that takes a rank over in a save goes on with it.
 * folder    the same on all ranks, at most 1023 bytes, copied; made if it is not there (not what it lies in). One that
 *           all nodes see, of this job alone: there is a file for each rank, of mode 0600, and a manifest, which is
 *           written last and in one piece, so that at any time the folder has the last save that was completed. Earlier
 *           ones are taken away then, also those of a job before. A process that stood still meanwhile changes nothing
 *           of a later save when it goes on. Who may write to the folder may change what is saved, so one to which
 *           everybody may is refused, unless it is this user's or root's and has a sticky bit.
 * blocks    as keel_keep_commit, and until the files are on the disk.
 * errors    those of keel_keep_commit; or, the same on all ranks, with a line on standard error: KEEL_ERR_SYSTEM: a
 *           file could not be written, also as it may not become so large (ulimit -f: no signal comes);
 *           KEEL_ERR_RANK_DEAD: a rank has died that nobody runs, or has left (keel_finalize, or its program's end),
 *           and had not made this version: then nobody can save any more, as what it has kept is of another version; or
 *           one has died that was to write the manifest; KEEL_ERR_DATA_LOST: a part of a segment is lost, and the line
 *           says which; none can be saved before the segment is freed. Then the version is committed, what was written
 *           of it is taken away, and the save before is still there; the next version is the next to be saved, and the
 *           same one again is KEEL_ERR_ARG. KEEL_ERR_TIMEOUT as keel_barrier: the same call goes on. */
KEEL_MUST_CHECK keel_status keel_keep_save(uint64_t version, const char *folder);
/* Every process calls it once, when it has registered what it keeps, and before its first keel_keep_commit. In a
 * process that takes the place of another one (keel_restarted) it is keel_resume, too: it fills the registered memory
 * with the rank's last version. Where the predecessor died in the middle of a commit or a save the call ends that: it
 * is then the version of all. Local but for that. In a job that begins with what another one has saved it is collective
 * over all live ranks, fills the segments, too, and the version is the saved one; what a rank has saved that dies for
 * good before it has loaded it, the lowest living one loads, or, if that dies in the middle, all others. In a set of
 * replicas that begins anew (keelrun --replicas) it fills the segments, too, with what the whole sets have at their
 * next keel_keep_commit; the version is that one, and keel_restarted is false.
 * *version  which one; 0: there was none, and the memory is unchanged.
 * *since    how many collectives of all live ranks count since that version (for 0, since the start of the job): these
 *           the process must leave out of the step that it now begins. NULL: the program has none in its steps but
 *           keel_keep_commit and keel_keep_save; if there were some the call is KEEL_ERR_STATE, with a line.
 * blocks    until the bytes are here; where a commit is to be ended, as keel_keep_commit.
 * errors    KEEL_ERR_MISMATCH with a line: names and sizes are not what the version has; KEEL_ERR_DATA_LOST with a
 *           line; on all ranks, with a line, KEEL_ERR_MISMATCH, KEEL_ERR_SYSTEM: what was saved is of other segments,
 *           or cannot be read, also where it is a dead rank's. The program cannot go on then. KEEL_ERR_STATE also: a
 *           version was restored or made by this process. */
KEEL_MUST_CHECK keel_status keel_keep_restore(uint64_t *version, uint64_t *since);
/* Collective over all live ranks, as a barrier, at any time later: all go back to the last version, which they have in
 * common. For programs that find their own results wrong; a death does not ask for it. The contents of segments stay as
 * they are.
 * *version  which one; 0: there is none, and the memory is unchanged.
 * blocks    until every live rank has called.
 * errors    the same on all ranks, with a line that names one that met it; the memory is of no version then.
 *           KEEL_ERR_MISMATCH: as keel_keep_restore. */
KEEL_MUST_CHECK keel_status keel_keep_rollback(uint64_t *version);
/* Bytes that another rank has kept, of its last version that counts here: also of a rank that is dead and that nobody
 * runs any more, whose work others take over. Of a living rank's it is stable until this one calls keel_keep_commit.
 * Local.
 * *version  (NULL is allowed) which one: that of a dead rank may be the one before the others' last.
 * blocks    as keel_get.
 * errors    KEEL_ERR_ARG: the rank has kept no such name, or not so many bytes; KEEL_ERR_STATE also: it has kept
 *           nothing yet. */
KEEL_MUST_CHECK keel_status keel_keep_get(int rank, const char *name, size_t offset, void *dst, size_t bytes,
                                          uint64_t *version);

#ifdef __cplusplus
}
#endif
#endif
