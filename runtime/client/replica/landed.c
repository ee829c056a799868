/* With --check hash and all replicas also look at what they have put where it lies, so that a bit is found that was
 * flipped on the way, or in the memory of the target. What each has put is in the sum that replicas compare (check.h);
 * that it lies there each of them asks in its own set (op/inspect.h), before it says its sum. Who finds something else
 * gets the bytes from a replica in whose set they are right, while all others of the rank stand still.
 *
 * Where one does the part of another that has died it looks in each set for which it acts. Memory of the dead is left
 * out. Each has kept what it has put since the last meeting, so it does that again where it finds something else.
 *
 * A rank's own part it may change by plain stores whenever it likes, so puts to it are not looked at. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/op/inspect.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/replica/sent.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/shape.h"

enum { INSPECTED = 1024, SENT_MAX = 16 * 1024, ASKED = 1024, LINE = 512, FOLLOWS = 64, KEPT_MAX = 16 << 20 };

/* The bytes of the ranges, with --check all. */
static struct {
    uint8_t *bytes;
    size_t n, room;
} kept;
static bool has_put; /* since the last exchange: the same in all replicas, also where a put came to nothing */
static struct sent sent, coming; /* coming: of the call under way, which may yet be refused */

bool replica_inspects(void)
{
    return replica.check == CHECK_HASH || replica.check == CHECK_ALL;
}

bool replica_inspects_soon(void)
{
    return sent.n >= SENT_MAX || kept.n >= KEPT_MAX;
}

/* ---- what is put ---- */

static bool is_inspected(int target, const keel_segment *segment)
{
    return segment && segment->number && target >= 0 && target < replica.size && target != replica.rank;
}

static bool keep(const uint8_t *bytes, size_t len)
{
    if (kept.room - kept.n < len) {
        size_t wider = 2 * kept.room + len;
        uint8_t *memory = realloc(kept.bytes, wider);
        if (!memory)
            return false;
        kept.bytes = memory;
        kept.room = wider;
    }
    memcpy(kept.bytes + kept.n, bytes, len);
    kept.n += len;
    return true;
}

/* Bytes that lie together. *sum: the hash of all before them, and with them. */
static bool add(const struct sent_range *where, const uint8_t *bytes, size_t len, bool known, uint64_t *sum)
{
    for (size_t at = 0; at < len; at += INSPECT_MAX) {
        struct sent_range r = *where;
        r.place += at;
        r.len = (uint32_t)(len - at < INSPECT_MAX ? len - at : INSPECT_MAX);
        r.hash = digest(bytes + at, r.len, 0);
        r.at = kept.n;
        *sum = len <= INSPECT_MAX && *sum == 0 ? r.hash : digest(&r.hash, sizeof r.hash, *sum);
        if (known && ((replica.check == CHECK_ALL && !keep(bytes + at, r.len)) || !sent_add(&coming, &r)))
            return false;
    }
    return true;
}

static struct sent_range range_of(enum replica_call call, int target, const keel_segment *segment, uint64_t place)
{
    return (struct sent_range){.segment = segment ? segment->number : 0,
                               .target = target,
                               .call = (uint32_t)call,
                               .place = place,
                               .number = replica.ops.now.count + 1};
}

keel_status replica_went(keel_status status)
{
    bool good = true;
    has_put = true;
    for (size_t i = 0; i < coming.n && status == KEEL_OK && good; i++)
        good = sent_add(&sent, &coming.range[i]);
    if (!good)
        log_warn("no memory to remember what was put: it is not looked at where it lies");
    sent_forget(&coming);
    return replica_after(status);
}

keel_status replica_did_put(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                            const void *bytes, size_t len)
{
    bytes = replica_may_read(segment, target, place, len) ? bytes : NULL;
    if (!replica_inspects() || !bytes) {
        replica_did_bytes(call, target, segment, place, bytes, len);
        return KEEL_OK;
    }
    struct sent_range r = range_of(call, target, segment, place);
    uint64_t sum = 0;
    bool good = add(&r, bytes, len, is_inspected(target, segment), &sum);
    replica_did(call, target, segment, place, len, sum);
    return good ? KEEL_OK : KEEL_ERR_NOMEM;
}

keel_status replica_did_pieces(enum replica_call call, int target, const keel_segment *segment,
                               const keel_piece *pieces, size_t n)
{
    bool known = is_inspected(target, segment), good = true;
    uint64_t sum = 0, bytes = 0;
    bool may = replica_may_read_pieces(segment, target, pieces, n);
    for (size_t i = 0; may && i < n && good; i++) {
        const uint64_t where[] = {pieces[i].offset, pieces[i].len};
        struct sent_range r = range_of(call, target, segment, pieces[i].offset);
        sum = digest(where, sizeof where, sum);
        good = add(&r, pieces[i].local, pieces[i].len, known, &sum);
        bytes += pieces[i].len;
    }
    replica_did(call, target, segment, may ? pieces[0].offset : 0, bytes, sum);
    return good ? KEEL_OK : KEEL_ERR_NOMEM;
}

/* A shape that the library refuses has no pieces. */
keel_status replica_did_shape(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                              const void *src, const keel_strided *how)
{
    struct shape shape;
    struct shape_walk walk;
    uint64_t at[SHAPE_SIDES], sum = 0, bytes = 0;
    bool known = is_inspected(target, segment), good = true;
    if (replica_may_read_shape(segment, target, place, src, how, &shape)) {
        sum = replica_hash_of_shape(how);
        shape_merge(&shape);
        shape_walk_init(&walk, &shape);
        while (good && shape_walk_next(&walk, at)) {
            struct sent_range r = range_of(call, target, segment, place + at[SHAPE_GLOBAL]);
            good = add(&r, (const uint8_t *)src + at[SHAPE_LOCAL], shape.run, known, &sum);
            bytes += shape.run;
        }
    }
    replica_did(call, target, segment, place, bytes, sum);
    return good ? KEEL_OK : KEEL_ERR_NOMEM;
}

void replica_changes(int target, const keel_segment *segment, uint64_t place, uint64_t len)
{
    if (!replica_inspects() || !is_inspected(target, segment) || sent.n == 0)
        return;
    struct sent_range r = range_of(REPLICA_CALLS, target, segment, place);
    r.len = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;
    r.changed = true;
    if (!sent_add(&sent, &r))
        sent_forget(&sent); /* nothing is known any more */
}

/* ---- whether it lies there ---- */

/* Ranges of one part, in that set: those that lie there otherwise get its number. */
static keel_status inspect_in(int set, size_t from, size_t n)
{
    static struct inspected part[INSPECTED];
    int target = sent.range[from].target;
    keel_segment *s = replica_lives(target, set) ? replica_part_in(sent.range[from].segment, set, target) : NULL;
    if (!s)
        return KEEL_OK; /* it was freed, or nobody has it there */
    for (size_t i = 0; i < n; i++)
        part[i] = (struct inspected){.offset = sent.range[from + i].place, .len = sent.range[from + i].len};
    keel_status status =
        inspect_parts(replica.client, s, replica_native(&replica.client->replicas, target, set), part, n);
    for (size_t i = 0; i < n && status == KEEL_OK; i++)
        if (part[i].found != sent.range[from + i].hash)
            sent.range[from + i].set = (uint8_t)set;
    return replica_settled(status, target, set);
}

/* What is found to be otherwise comes to the front, behind those that were found so before. */
static keel_status inspect_some(size_t from, size_t n, size_t *wrong)
{
    keel_status status = KEEL_OK;
    for (size_t i = 0; i < n; i++)
        sent.range[from + i].set = REPLICAS_MAX;
    for (int s = 0; s < replica.sets && status == KEEL_OK; s++)
        if (replica_acts() >> s & 1)
            status = inspect_in(s, from, n);
    for (size_t i = 0; i < n && status == KEEL_OK; i++)
        if (sent.range[from + i].set < REPLICAS_MAX)
            sent.range[(*wrong)++] = sent.range[from + i];
    return status;
}

/* Of those that are in `sent`, settled, only those stay that do not lie where they were put. */
static keel_status inspect_all(void)
{
    size_t wrong = 0;
    keel_status status = KEEL_OK;
    for (size_t i = 0, n; i < sent.n && status == KEEL_OK; i += n) {
        n = sent_alike(&sent, i);
        n = n < INSPECTED ? n : INSPECTED;
        status = inspect_some(i, n, &wrong);
    }
    sent.n = status == KEEL_OK ? wrong : 0;
    return status;
}

keel_status replica_inspect(size_t *wrong)
{
    *wrong = 0;
    if (sent.n == 0)
        return KEEL_OK;
    keel_status status = replica.below->fence_all();
    if (status != KEEL_OK) {
        sent_forget(&sent);
        return status;
    }
    sent_settle(&sent);
    if (replica.check == CHECK_HASH)
        status = inspect_all();
    *wrong = replica.check == CHECK_HASH ? sent.n : 0;
    return status;
}

keel_status replica_inspect_all_sets(size_t *wrong, const bool *there, bool *any)
{
    bool suspect;
    keel_status inspected = KEEL_OK, status = replica_vote(&sent, kept.bytes, there, &suspect);
    if (status != KEEL_OK)
        return status;
    if (suspect)
        inspected = inspect_all();
    wrong[replica.set] = suspect ? sent.n : 0;
    status = replica_share_wrong(wrong, there);
    for (int s = 0; s < replica.sets; s++)
        *any = *any || (there[s] && wrong[s]);
    return status == KEEL_OK ? inspected : status;
}

bool replica_has_put(void)
{
    return has_put;
}

void replica_inspected(void)
{
    has_put = false;
    sent_forget(&sent);
    if (coming.n == 0) /* else what is about to be put has its bytes there */
        kept.n = 0;
}

/* ---- what does not ---- */

/* From the set whose memory is wrong: ranges that it wants; or, with none, what has come of it. */
struct mend_said {
    uint64_t exchange;
    uint32_t ranges;
    uint32_t ends; /* the set does */
    char text[LINE];
};

struct wanted {
    uint64_t segment, place;
    uint32_t len;
    int32_t target;
};

static void line(char *out, size_t room)
{
    const struct sent_range *r = &sent.range[0];
    for (size_t i = 1; i < sent.n; i++)
        r = sent.range[i].number < r->number ? &sent.range[i] : r;
    int n = snprintf(out, room,
                     "rank %d: what operation %" PRIu64 " since the start, %s to rank %d, segment %" PRIu64
                     ", has put at %" PRIu64 ", %" PRIu32 " bytes",
                     replica.rank, r->number, replica_call_name((enum replica_call)r->call), r->target, r->segment,
                     r->place, r->len);
    if (sent.n > 1)
        n += snprintf(out + n, room - (size_t)n, ", and %zu more", sent.n - 1);
    snprintf(out + n, room - (size_t)n, ", lies there otherwise in set %d", r->set);
}

static bool ask(int of, keel_status *status)
{
    struct mend_said said = {.exchange = replica.exchanges, .ranges = (uint32_t)sent.n};
    struct wanted some[ASKED];
    bool good = replica_send(of, REPLICA_MEND, &said, sizeof said, status);
    for (size_t i = 0; i < sent.n && good;) {
        size_t k = 0;
        for (; k < ASKED && i < sent.n; k++, i++)
            some[k] =
                (struct wanted){sent.range[i].segment, sent.range[i].place, sent.range[i].len, sent.range[i].target};
        good = replica_send(of, REPLICA_ENTRIES, some, k * sizeof *some, status);
    }
    return good;
}

static keel_status take(int of, keel_status *status)
{
    static uint8_t bytes[INSPECT_MAX];
    keel_status put = KEEL_OK;
    for (size_t i = 0; i < sent.n; i++) {
        const struct sent_range *r = &sent.range[i];
        if (!replica_hear(of, REPLICA_BYTES, bytes, r->len, status))
            return KEEL_ERR_RANK_DEAD;
        if (put == KEEL_OK)
            put =
                replica.below->put(replica_segment(r->segment), replica_native_of(r->target), r->place, bytes, r->len);
    }
    return put == KEEL_OK ? replica.below->fence_all() : put;
}

static keel_status give(int to, size_t n, keel_status *status)
{
    static uint8_t bytes[INSPECT_MAX];
    struct wanted some[ASKED];
    for (size_t done = 0; done < n;) {
        size_t k = n - done < ASKED ? n - done : ASKED;
        if (!replica_hear(to, REPLICA_ENTRIES, some, k * sizeof *some, status))
            return KEEL_OK;
        for (size_t i = 0; i < k; i++) {
            keel_segment *s = replica_segment(some[i].segment);
            keel_status got = s && some[i].len <= INSPECT_MAX ? replica.below->get(s, replica_native_of(some[i].target),
                                                                                   some[i].place, bytes, some[i].len)
                                                              : KEEL_ERR_ARG;
            if (got != KEEL_OK)
                return got;
            if (!replica_send(to, REPLICA_BYTES, bytes, some[i].len, status))
                return KEEL_OK;
        }
        done += k;
    }
    return KEEL_OK;
}

/* False: no other set's is right, or it has died meanwhile: it had said nothing that others do not know. */
static bool mend_from_others(const size_t *wrong, const bool *there, keel_status *status)
{
    bool right = false;
    for (int s = 0; s < replica.sets && !right && *status == KEEL_OK; s++)
        if (s != replica.set && there[s] && !wrong[s] && !replica.gone[s])
            right = ask(s, status) && take(s, status) == KEEL_OK && inspect_all() == KEEL_OK && sent.n == 0;
    return right;
}

static bool mend_from_kept(void)
{
    replica_take_over(replica_acts());
    return inspect_all() == KEEL_OK && sent.n == 0;
}

/* This set's memory is wrong, or that of one for which this replica acts. */
static keel_status repair(const size_t *wrong, const bool *there)
{
    struct mend_said said = {.exchange = replica.exchanges};
    keel_status status = KEEL_OK;
    char text[LINE - FOLLOWS];
    bool right = false, stops = replica.on_mismatch == MISMATCH_STOP;
    line(text, sizeof text);
    if (stops)
        right = replica.partners ? mend_from_kept() : mend_from_others(wrong, there, &status);
    if (status != KEEL_OK)
        return status;
    said.ends = stops && !right;
    snprintf(said.text, sizeof said.text, "%s%s", text,
             !stops  ? ""
             : right ? replica.partners ? ", and was written once more" : ", and has got the bytes of another set"
                     : ", which ends");
    for (int s = 0; s < replica.sets && status == KEEL_OK; s++)
        if (s != replica.set && there[s] && !replica.gone[s])
            (void)replica_send(s, REPLICA_MEND, &said, sizeof said, &status);
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && there[s])
            replica_await_reader(s, &status);
    if (said.ends)
        replica_stop(said.text);
    replica_tell_people(replica.set, said.text);
    return status;
}

/* Stands still until it is said what has come of it. */
static keel_status help(int set)
{
    struct mend_said said;
    keel_status status = KEEL_OK;
    while (replica_hear(set, REPLICA_MEND, &said, sizeof said, &status)) {
        if (said.exchange < replica.exchanges)
            continue;
        if (said.ranges == 0) {
            replica_tell_people(set, said.text);
            (void)replica_has_read(set, &status);
            return status;
        }
        keel_status gave = give(set, said.ranges, &status);
        if (gave != KEEL_OK)
            return gave;
    }
    return status;
}

keel_status replica_mend_memory(const size_t *wrong, const bool *there)
{
    keel_status status = KEEL_OK;
    FAULT_POINT("replica.mending");
    for (int s = 0; s < replica.sets && status == KEEL_OK; s++)
        if (there[s] && wrong[s])
            status = s == replica.set ? repair(wrong, there) : help(s);
    return status;
}
