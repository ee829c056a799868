/* What the files of schedules share: appending steps, and teams, the places that one part of an algorithm runs over. */
#ifndef KEEL_COLLECTIVES_SCHEDULE_INT_H
#define KEEL_COLLECTIVES_SCHEDULE_INT_H

#include "collectives/schedule.h"

/* Members 0..n-1 of the team are the places place[0..n-1], or first + i modulo all where there is no list. */
struct team {
    int n, me; /* me: -1 if the own place is not in it */
    const int *place;
    int first, all;
    uint32_t tag; /* tags of this part start here */
};

enum { PART = 1 << 24 }; /* tags of one part of an algorithm */

static inline struct schedule_region region(enum schedule_buffer buffer, size_t at)
{
    return (struct schedule_region){buffer, at};
}

/* The part of a vector that starts at r, further on. */
static inline struct schedule_region offset(struct schedule_region r, size_t by)
{
    return (struct schedule_region){r.buffer, r.at + by};
}

void add_send(struct schedule *s, const struct team *t, int to, uint32_t tag, struct schedule_region from, size_t len);
/* As add_send and add_recv, also of no bytes. */
void add_send_always(struct schedule *s, const struct team *t, int to, uint32_t tag, struct schedule_region from,
                     size_t len);
void add_recv_always(struct schedule *s, const struct team *t, int from, uint32_t tag, struct schedule_region to,
                     size_t len);
void add_recv(struct schedule *s, const struct team *t, int from, uint32_t tag, struct schedule_region to, size_t len);
void add_copy(struct schedule *s, struct schedule_region to, struct schedule_region from, size_t len);
void add_combine(struct schedule *s, struct schedule_region to, struct schedule_region from, bool from_is_left,
                 size_t len);
/* so many further bytes of TMP */
struct schedule_region add_tmp(struct schedule *s, size_t len);

/* All places, rotated so that first is member 0. */
struct team team_all(const struct schedule_shape *shape, int first, uint32_t tag);
/* Chunk i of n of a vector of len bytes, cut at multiples of unit. */
struct schedule_block chunk_of(size_t len, size_t unit, int n, int i);

/* Parts; every member of the team calls them alike. data: the same region everywhere. */
void part_bcast(struct schedule *s, const struct team *t, struct schedule_region data, size_t len);  /* from member 0 */
void part_reduce(struct schedule *s, const struct team *t, struct schedule_region data, size_t len); /* to member 0 */
void part_allreduce(struct schedule *s, const struct team *t, struct schedule_region data, size_t len);
/* data: member i's chunk i everywhere -> all chunks everywhere */
void part_ring_allgather(struct schedule *s, const struct team *t, struct schedule_region data, size_t len,
                         size_t unit);

void build_bcast(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_reduce(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_allreduce(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_reduce_scatter(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_scan(struct schedule *s, const struct schedule_shape *shape);
void build_gather(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_scatter(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_allgather(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_alltoall(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
void build_two_level(struct schedule *s, const struct schedule_shape *shape);
#endif
