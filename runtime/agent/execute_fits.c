/* Whether a request fits its kind, and the copy that is here. It comes from a process that may say anything. */
#include "runtime/agent/execute_target.h"

#include "runtime/agent/execute_int.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/get.h"
#include "runtime/wire/put.h"
#include "runtime/wire/rmw.h"

/* What one answer can carry. */
static uint32_t get_max(const struct agent *a, const struct request_target *t, const struct msg_get *get)
{
    return t->conn->node == a->self || get->strong ? WIRE_BODY_MAX : WIRE_BULK_MAX;
}

/* The pieces come with their bytes. */
static bool has_data(const struct request_target *t)
{
    struct msg_get get;
    if (t->w->type != WIRE_GET)
        return true;
    msg_get_decode(t->w, &get);
    return get.compares;
}

/* The pieces lie in the copy, as elements of size bytes, aligned so. */
static bool are_pieces_here(struct request_target *t, size_t align, size_t size)
{
    const struct msg_request *r = &t->request;
    return pack_open(&t->pack, t->body, r->len, has_data(t)) && in_range(t->copy, r->at.offset, 0) &&
           r->at.offset % align == 0 && pack_fits(&t->pack, t->copy->bytes - r->at.offset, align, size);
}

/* The bytes do. */
static bool are_bytes_here(const struct request_target *t, uint64_t len, size_t align)
{
    return in_range(t->copy, t->request.at.offset, len) && t->request.at.offset % align == 0;
}

static bool put_fits(struct request_target *t)
{
    struct msg_put put;
    msg_put_decode(t->w, &put);
    if (put.note >= NOTES_MAX)
        return false;
    return is_packed(t) ? are_pieces_here(t, 1, 1) : are_bytes_here(t, t->request.len, 1);
}

static bool get_fits(const struct agent *a, struct request_target *t)
{
    struct msg_get get;
    msg_get_decode(t->w, &get);
    if (is_packed(t))
        return !get.strong && (get.inspects || !get.compares) && are_pieces_here(t, 1, 1);
    return !get.inspects && !get.compares && get.bytes <= get_max(a, t, &get) && are_bytes_here(t, get.bytes, 1);
}

bool acc_fits(struct request_target *t)
{
    struct msg_acc acc;
    msg_acc_decode(t->w, &acc);
    if (acc.identity.lane >= LANES_MAX || !arith_can_add(acc.type))
        return false;
    size_t align = arith_align(acc.type), size = arith_size(acc.type);
    return is_packed(t) ? are_pieces_here(t, align, size)
                        : t->request.len % size == 0 && are_bytes_here(t, t->request.len, align);
}

bool rmw_fits(const struct request_target *t)
{
    struct msg_rmw rmw;
    msg_rmw_decode(t->w, &rmw);
    return rmw.identity.lane < LANES_MAX && !is_packed(t) && rmw.operation < ARITH_RMW_OPS &&
           (!rmw.unordered || rmw.operation == ARITH_ADD) && are_bytes_here(t, rmw.bytes, rmw.bytes);
}

bool request_fits(const struct agent *a, struct request_target *t)
{
    switch (t->w->type) {
    case WIRE_PUT:
        return put_fits(t);
    case WIRE_GET:
        return get_fits(a, t);
    case WIRE_ACC:
        return acc_fits(t);
    default:
        return rmw_fits(t);
    }
}
