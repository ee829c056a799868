/* An audit: are the copies of all segments equal, byte by byte? One agent asks the nodes of each part's copies for
 * hashes, block by block, at a moment that is meant to be quiet. Blocks that differ are asked for again, for a while:
 * if a copy changes meanwhile, or the copyset is being made equal, the block is called busy, which says nothing about
 * it; if all stay as they are, that is a difference, and its first byte is looked for. */
#ifndef KEEL_AGENT_VERIFY_H
#define KEEL_AGENT_VERIFY_H

#include <stdint.h>

#include "runtime/wire/wire.h"

struct agent;
struct verify; /* verify.c */

/* Audits that were asked for here. */
struct audits {
    struct verify *first; /* is under way; those that follow wait for it */
    uint64_t questions;   /* of theirs, so far */
};

enum { VERIFY_BLOCK = 256 * 1024 };

/* For the owner: agent_ops.verified follows, with this id. One after the other. */
void verify_start(struct agent *a, uint64_t id);
/* WIRE_HASH, at a copy; WIRE_HASHED, where it was asked. */
void verify_asked(struct agent *a, int from, const struct wire *w);
void verify_told(struct agent *a, int from, const struct wire *w, const void *body);
void verify_step(struct agent *a);
uint64_t verify_deadline(const struct agent *a);
void verify_fini(struct audits *audits);
#endif
