/* What both ends of the data path say to each other: the header of all messages (header.h), and remote keys. */
#ifndef KEEL_WIRE_WIRE_H
#define KEEL_WIRE_WIRE_H

#include "runtime/base/life.h"
#include "runtime/base/limits.h"
#include "runtime/wire/header.h"
#include "runtime/wire/reply.h"

_Static_assert(LIMIT_NODES - 1 <= UINT16_MAX, "a slot's number fits it, and a message's header");

/* The remote key of a slot's part of a segment under one generation of its route: a write that was planned for an older
 * one finds no memory. */
static inline uint64_t wire_key(uint32_t seg, int slot, uint64_t generation)
{
    return (uint64_t)seg << 32 | (uint64_t)(uint16_t)slot << 16 | (generation & 0xffff);
}
#endif
