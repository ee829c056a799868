/* Put, get, accumulate and atomics, in every shape. Each call finds the part that its remote address is in and hands
 * Keel a descriptor. Memory of the caller's own that is no segment's is copied here. */
#include <limits.h>
#include <string.h>

#include "armci/data_int.h"

keel_type armci_call_type(const struct armci_call *q, int datatype)
{
    static const keel_type types[] = {
        [ARMCI_ACC_INT] = KEEL_INT32,  [ARMCI_ACC_LNG] = KEEL_INT64,         [ARMCI_ACC_FLT] = KEEL_FLOAT,
        [ARMCI_ACC_DBL] = KEEL_DOUBLE, [ARMCI_ACC_CPL] = KEEL_COMPLEX_FLOAT, [ARMCI_ACC_DCP] = KEEL_COMPLEX_DOUBLE};
    armci_running(q->name);
    if (datatype < 0 || datatype > ARMCI_ACC_DCP)
        armci_end(q->name, q->proc, "no such type of accumulate");
    return types[datatype];
}

/* ---- strided, of which contiguous is the case without levels ---- */

void armci_call_check(const struct armci_call *q)
{
    armci_running(q->name);
    if (q->proc < 0 || q->proc >= keel_size())
        armci_end(q->name, q->proc, "no such process");
}

static void describe(const struct armci_call *q, keel_strided *d, const int *global, const int *local, const int *count,
                     int levels)
{
    if (levels < 0 || levels > KEEL_STRIDE_LEVELS_MAX)
        armci_end(q->name, q->proc, "more stride levels than 8, or less than none");
    if (!count || (levels && (!global || !local)))
        armci_end(q->name, q->proc, "no counts or strides");
    *d = (keel_strided){.levels = levels};
    for (int i = 0; i <= levels; i++) {
        if (count[i] < 0 || (i < levels && count[i + 1] > 1 && (global[i] < 0 || local[i] < 0)))
            armci_end(q->name, q->proc, "a negative count or stride");
        d->count[i] = (size_t)count[i];
    }
    for (int i = 0; i < levels; i++) {
        d->global_stride[i] = (size_t)global[i];
        d->local_stride[i] = (size_t)local[i];
    }
}

/* Within the caller's own memory. */
static void copy_here(const keel_strided *d, int level, char *to, const size_t *to_stride, const char *from,
                      const size_t *from_stride)
{
    if (level == 0)
        memmove(to, from, d->count[0]);
    for (size_t i = 0; level && i < d->count[level]; i++)
        copy_here(d, level - 1, to + i * to_stride[level - 1], to_stride, from + i * from_stride[level - 1],
                  from_stride);
}

static void strided_here(const struct armci_call *q, const keel_strided *d, void *remote, void *local)
{
    if (q->proc != keel_rank() || q->what == ACC || !remote)
        armci_end(q->name, q->proc, "the remote address is in no memory of that process");
    if (q->what == PUT)
        copy_here(d, d->levels, remote, d->global_stride, local, d->local_stride);
    else
        copy_here(d, d->levels, local, d->local_stride, remote, d->global_stride);
}

static keel_status strided_start(const struct armci_call *q, keel_segment *s, size_t at, void *local,
                                 const keel_strided *d)
{
    if (q->blocks) {
        if (q->what == PUT)
            return keel_put_strided(s, q->proc, at, local, d);
        if (q->what == GET)
            return keel_get_strided(s, q->proc, at, local, d);
        return keel_acc_strided(s, q->proc, at, q->type, q->scale, local, d);
    }
    keel_handle *handle = armci_handle(q->handle);
    if (q->what == PUT)
        return keel_put_strided_nb(s, q->proc, at, local, d, handle);
    if (q->what == GET)
        return keel_get_strided_nb(s, q->proc, at, local, d, handle);
    return keel_acc_strided_nb(s, q->proc, at, q->type, q->scale, local, d, handle);
}

static bool is_empty(const keel_strided *d)
{
    for (int i = 0; i <= d->levels; i++)
        if (d->count[i] == 0)
            return true;
    return false;
}

static int strided(const struct armci_call *q, void *remote, const int *remote_stride, void *local,
                   const int *local_stride, const int *count, int levels)
{
    keel_strided d;
    keel_segment *s;
    size_t at;
    armci_call_check(q);
    describe(q, &d, remote_stride, local_stride, count, levels);
    if (is_empty(&d))
        return 0;
    struct armci_call found = *q;
    if (armci_find(&found.proc, remote, &s, &at))
        armci_check(strided_start(&found, s, at, local, &d), q->name, q->proc);
    else
        strided_here(q, &d, remote, local);
    return 0;
}

int armci_call_contiguous(const struct armci_call *q, void *remote, void *local, int bytes)
{
    return strided(q, remote, NULL, local, NULL, &bytes, 0);
}

ARMCI_EXPORT int ARMCI_Put(void *src, void *dst, int bytes, int proc)
{
    const struct armci_call q = {.name = "ARMCI_Put", .what = PUT, .proc = proc, .blocks = true};
    return armci_call_contiguous(&q, dst, src, bytes);
}

ARMCI_EXPORT int ARMCI_Get(void *src, void *dst, int bytes, int proc)
{
    const struct armci_call q = {.name = "ARMCI_Get", .what = GET, .proc = proc, .blocks = true};
    return armci_call_contiguous(&q, src, dst, bytes);
}

ARMCI_EXPORT int ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc)
{
    struct armci_call q = {.name = "ARMCI_Acc", .what = ACC, .proc = proc, .scale = scale, .blocks = true};
    q.type = armci_call_type(&q, datatype);
    return armci_call_contiguous(&q, dst, src, bytes);
}

ARMCI_EXPORT int ARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    const struct armci_call q = {.name = "ARMCI_NbPut", .what = PUT, .proc = proc, .handle = handle};
    return armci_call_contiguous(&q, dst, src, bytes);
}

ARMCI_EXPORT int ARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    const struct armci_call q = {.name = "ARMCI_NbGet", .what = GET, .proc = proc, .handle = handle};
    return armci_call_contiguous(&q, src, dst, bytes);
}

ARMCI_EXPORT int ARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    struct armci_call q = {.name = "ARMCI_NbAcc", .what = ACC, .proc = proc, .scale = scale, .handle = handle};
    q.type = armci_call_type(&q, datatype);
    return armci_call_contiguous(&q, dst, src, bytes);
}

ARMCI_EXPORT void ARMCI_Copy(void *src, void *dst, int bytes)
{
    if (bytes < 0)
        armci_end("ARMCI_Copy", keel_rank(), "a negative length");
    if (bytes)
        memmove(dst, src, (size_t)bytes);
}

ARMCI_EXPORT int ARMCI_PutS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc)
{
    const struct armci_call q = {.name = "ARMCI_PutS", .what = PUT, .proc = proc, .blocks = true};
    return strided(&q, dst, dst_stride, src, src_stride, count, levels);
}

ARMCI_EXPORT int ARMCI_GetS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc)
{
    const struct armci_call q = {.name = "ARMCI_GetS", .what = GET, .proc = proc, .blocks = true};
    return strided(&q, src, src_stride, dst, dst_stride, count, levels);
}

ARMCI_EXPORT int ARMCI_AccS(int datatype, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
                            int *count, int levels, int proc)
{
    struct armci_call q = {.name = "ARMCI_AccS", .what = ACC, .proc = proc, .scale = scale, .blocks = true};
    q.type = armci_call_type(&q, datatype);
    return strided(&q, dst, dst_stride, src, src_stride, count, levels);
}

ARMCI_EXPORT int ARMCI_NbPutS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc,
                              armci_hdl_t *handle)
{
    const struct armci_call q = {.name = "ARMCI_NbPutS", .what = PUT, .proc = proc, .handle = handle};
    return strided(&q, dst, dst_stride, src, src_stride, count, levels);
}

ARMCI_EXPORT int ARMCI_NbGetS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc,
                              armci_hdl_t *handle)
{
    const struct armci_call q = {.name = "ARMCI_NbGetS", .what = GET, .proc = proc, .handle = handle};
    return strided(&q, src, src_stride, dst, dst_stride, count, levels);
}

ARMCI_EXPORT int ARMCI_NbAccS(int datatype, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
                              int *count, int levels, int proc, armci_hdl_t *handle)
{
    struct armci_call q = {.name = "ARMCI_NbAccS", .what = ACC, .proc = proc, .scale = scale, .handle = handle};
    q.type = armci_call_type(&q, datatype);
    return strided(&q, dst, dst_stride, src, src_stride, count, levels);
}

/* Who sees the flag sees the bytes. */
static int flag_put(const struct armci_call *q, int *flag, int value)
{
    return armci_call_contiguous(q, flag, &value, (int)sizeof value);
}

ARMCI_EXPORT int ARMCI_PutS_flag(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels,
                                 int *flag, int value, int proc)
{
    const struct armci_call q = {.name = "ARMCI_PutS_flag", .what = PUT, .proc = proc, .blocks = true};
    (void)strided(&q, dst, dst_stride, src, src_stride, count, levels);
    return flag_put(&q, flag, value);
}

ARMCI_EXPORT int ARMCI_Put_flag(void *src, void *dst, int bytes, int *flag, int value, int proc)
{
    const struct armci_call q = {.name = "ARMCI_Put_flag", .what = PUT, .proc = proc, .blocks = true};
    (void)armci_call_contiguous(&q, dst, src, bytes);
    return flag_put(&q, flag, value);
}

static void pack(char *strided_at, int level, const int *stride, const int *count, char **buf, bool to_buf)
{
    if (level == 0) {
        memcpy(to_buf ? *buf : strided_at, to_buf ? strided_at : *buf, (size_t)count[0]);
        *buf += count[0];
        return;
    }
    for (int i = 0; i < count[level]; i++)
        pack(strided_at + (ptrdiff_t)i * stride[level - 1], level - 1, stride, count, buf, to_buf);
}

static void check_pack(const char *call, int levels, const int *count)
{
    if (levels < 0 || levels > KEEL_STRIDE_LEVELS_MAX)
        armci_end(call, keel_rank(), "more stride levels than 8, or less than none");
    for (int i = 0; i <= levels; i++)
        if (count[i] < 0)
            armci_end(call, keel_rank(), "a negative count");
}

ARMCI_EXPORT void armci_write_strided(void *ptr, int levels, int *stride, int *count, char *buf)
{
    check_pack("armci_write_strided", levels, count);
    pack(ptr, levels, stride, count, &buf, true);
}

ARMCI_EXPORT void armci_read_strided(void *ptr, int levels, int *stride, int *count, char *buf)
{
    check_pack("armci_read_strided", levels, count);
    pack(ptr, levels, stride, count, &buf, false);
}

/* ---- values: the caller's is gone when the call returns, so these are complete then ---- */

static int value_put(const char *call, void *value, size_t bytes, void *dst, int proc)
{
    const struct armci_call q = {.name = call, .what = PUT, .proc = proc, .blocks = true};
    return armci_call_contiguous(&q, dst, value, (int)bytes);
}

static void value_get(const char *call, void *src, void *value, size_t bytes, int proc)
{
    const struct armci_call q = {.name = call, .what = GET, .proc = proc, .blocks = true};
    (void)armci_call_contiguous(&q, src, value, (int)bytes);
}

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define VALUES(NAME, T)                                                                                                \
    ARMCI_EXPORT int ARMCI_PutValue##NAME(T src, void *dst, int proc)                                                  \
    {                                                                                                                  \
        return value_put("ARMCI_PutValue" #NAME, &src, sizeof src, dst, proc);                                         \
    }                                                                                                                  \
    ARMCI_EXPORT int ARMCI_NbPutValue##NAME(T src, void *dst, int proc, armci_hdl_t *handle)                           \
    {                                                                                                                  \
        (void)handle;                                                                                                  \
        return value_put("ARMCI_NbPutValue" #NAME, &src, sizeof src, dst, proc);                                       \
    }                                                                                                                  \
    ARMCI_EXPORT T ARMCI_GetValue##NAME(void *src, int proc)                                                           \
    {                                                                                                                  \
        T value = 0;                                                                                                   \
        value_get("ARMCI_GetValue" #NAME, src, &value, sizeof value, proc);                                            \
        return value;                                                                                                  \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

VALUES(Int, int)
VALUES(Long, long)
VALUES(Float, float)
VALUES(Double, double)

/* ---- atomics ---- */

ARMCI_EXPORT int ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc)
{
    keel_segment *s;
    size_t at;
    armci_running("ARMCI_Rmw");
    if (op < ARMCI_FETCH_AND_ADD || op > ARMCI_SWAP_LONG)
        armci_end("ARMCI_Rmw", proc, "no such operation");
    if (!ploc)
        armci_end("ARMCI_Rmw", proc, "no place for the value");
    int at_proc = proc;
    if (!armci_find(&at_proc, prem, &s, &at))
        armci_end("ARMCI_Rmw", proc, "the address is in no memory of that process");
    bool is_long = op == ARMCI_FETCH_AND_ADD_LONG || op == ARMCI_SWAP_LONG;
    bool swap = op == ARMCI_SWAP || op == ARMCI_SWAP_LONG;
    long wide = value;
    int old_narrow = 0;
    long old_wide = 0;
    const void *operand = swap ? ploc : is_long ? (void *)&wide : (void *)&value;
    armci_check(keel_rmw(s, at_proc, at, is_long ? KEEL_INT64 : KEEL_INT32, swap ? KEEL_RMW_SWAP : KEEL_RMW_ADD,
                         operand, NULL, is_long ? (void *)&old_wide : (void *)&old_narrow),
                "ARMCI_Rmw", proc);
    if (is_long)
        memcpy(ploc, &old_wide, sizeof old_wide);
    else
        memcpy(ploc, &old_narrow, sizeof old_narrow);
    return 0;
}
