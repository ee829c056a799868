/* Put, get and accumulate of vectors: pieces of one length at any addresses. */
#include "armci/data_int.h"

#include <stdint.h>
#include <stdlib.h>

/* Pieces one by one: those of several segments, of memory that is no segment's, and those that overlap, of which the
 * last wins: so puts wait for each other. */
static void pieces_apart(const struct armci_call *call, const armci_giov_t *v)
{
    struct armci_call one = *call, *q = &one;
    one.blocks = one.blocks || one.what == PUT;
    for (int i = 0; i < v->ptr_array_len; i++) {
        bool get = q->what == GET;
        (void)armci_call_contiguous(q, get ? v->src_ptr_array[i] : v->dst_ptr_array[i],
                                    get ? v->dst_ptr_array[i] : v->src_ptr_array[i], v->bytes);
    }
}

static keel_status pieces_start(const struct armci_call *q, keel_segment *s, const keel_piece *piece, size_t n)
{
    if (q->blocks) {
        if (q->what == PUT)
            return keel_put_vector(s, q->proc, piece, n);
        if (q->what == GET)
            return keel_get_vector(s, q->proc, piece, n);
        return keel_acc_vector(s, q->proc, q->type, q->scale, piece, n);
    }
    keel_handle *handle = armci_handle(q->handle);
    if (q->what == PUT)
        return keel_put_vector_nb(s, q->proc, piece, n, handle);
    if (q->what == GET)
        return keel_get_vector_nb(s, q->proc, piece, n, handle);
    return keel_acc_vector_nb(s, q->proc, q->type, q->scale, piece, n, handle);
}

static void check_vectors(const struct armci_call *q, const armci_giov_t *iov, int n)
{
    armci_call_check(q);
    if (n < 0 || (n && !iov))
        armci_end(q->name, q->proc, "a negative number of vectors, or none where there are some");
}

static void one_vector(const struct armci_call *q, const armci_giov_t *v)
{
    if (v->bytes < 0 || v->ptr_array_len < 0)
        armci_end(q->name, q->proc, "a negative length");
    if (v->ptr_array_len && (!v->src_ptr_array || !v->dst_ptr_array))
        armci_end(q->name, q->proc, "no addresses");
    size_t n = (size_t)v->ptr_array_len;
    keel_piece *piece = malloc(n * sizeof *piece + 1);
    keel_segment *s = NULL, *other;
    struct armci_call found = *q;
    bool together = piece;
    for (size_t i = 0; i < n && together; i++) {
        bool get = q->what == GET;
        piece[i].len = (size_t)v->bytes;
        piece[i].local = get ? v->dst_ptr_array[i] : v->src_ptr_array[i];
        found.proc = q->proc;
        together = armci_find(&found.proc, get ? v->src_ptr_array[i] : v->dst_ptr_array[i], &other, &piece[i].offset) &&
                   (!s || s == other);
        s = other;
    }
    keel_status status = together && n ? pieces_start(&found, s, piece, n) : KEEL_ERR_ARG;
    if (status == KEEL_ERR_ARG && together && n && q->what == PUT)
        status = pieces_start(&found, s, piece, armci_distinct(piece, n));
    if (status == KEEL_ERR_ARG)
        pieces_apart(q, v);
    else
        armci_check(status, q->name, q->proc);
    free(piece);
}

static int vectors(const struct armci_call *q, const armci_giov_t *iov, int n)
{
    check_vectors(q, iov, n);
    for (int i = 0; i < n; i++)
        one_vector(q, &iov[i]);
    return 0;
}

ARMCI_EXPORT int ARMCI_PutV(armci_giov_t *iov, int n, int proc)
{
    const struct armci_call q = {.name = "ARMCI_PutV", .what = PUT, .proc = proc, .blocks = true};
    return vectors(&q, iov, n);
}

ARMCI_EXPORT int ARMCI_GetV(armci_giov_t *iov, int n, int proc)
{
    const struct armci_call q = {.name = "ARMCI_GetV", .what = GET, .proc = proc, .blocks = true};
    return vectors(&q, iov, n);
}

ARMCI_EXPORT int ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int n, int proc)
{
    struct armci_call q = {.name = "ARMCI_AccV", .what = ACC, .proc = proc, .scale = scale, .blocks = true};
    q.type = armci_call_type(&q, datatype);
    return vectors(&q, iov, n);
}

struct extent {
    uintptr_t from, until;
};

static int by_from(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Do pieces of different vectors perhaps go to the same place? */
static bool may_overlap(const armci_giov_t *iov, int n)
{
    struct extent *e = n > 1 ? malloc((size_t)n * sizeof *e) : NULL;
    int used = 0;
    bool overlap = n > 1 && !e;
    for (int i = 0; e && i < n; i++) {
        struct extent one = {UINTPTR_MAX, 0};
        for (int k = 0; iov[i].dst_ptr_array && iov[i].bytes > 0 && k < iov[i].ptr_array_len; k++) {
            uintptr_t at = (uintptr_t)iov[i].dst_ptr_array[k], end = at + (uintptr_t)iov[i].bytes;
            one.from = at < one.from ? at : one.from;
            one.until = end > one.until ? end : one.until;
        }
        if (one.until)
            e[used++] = one;
    }
    if (e)
        qsort(e, (size_t)used, sizeof *e, by_from);
    for (int i = 1; i < used && !overlap; i++)
        overlap = e[i].from < e[i - 1].until;
    free(e);
    return overlap;
}

/* Several vectors of one call complete with one handle: it is an aggregate while they are started. */
static int vectors_nb(struct armci_call *q, const armci_giov_t *iov, int n, armci_hdl_t *handle)
{
    int aggregate = handle ? handle->aggregate : 0;
    check_vectors(q, iov, n);
    q->handle = handle;
    q->blocks = q->what == PUT && may_overlap(iov, n); /* one after the other: the last one stays */
    for (int i = 0; i < n; i++) {
        one_vector(q, &iov[i]);
        if (handle)
            handle->aggregate = 1;
    }
    if (handle)
        handle->aggregate = aggregate;
    return 0;
}

ARMCI_EXPORT int ARMCI_NbPutV(armci_giov_t *iov, int n, int proc, armci_hdl_t *handle)
{
    struct armci_call q = {.name = "ARMCI_NbPutV", .what = PUT, .proc = proc};
    return vectors_nb(&q, iov, n, handle);
}

ARMCI_EXPORT int ARMCI_NbGetV(armci_giov_t *iov, int n, int proc, armci_hdl_t *handle)
{
    struct armci_call q = {.name = "ARMCI_NbGetV", .what = GET, .proc = proc};
    return vectors_nb(&q, iov, n, handle);
}

ARMCI_EXPORT int ARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int n, int proc, armci_hdl_t *handle)
{
    struct armci_call q = {.name = "ARMCI_NbAccV", .what = ACC, .proc = proc, .scale = scale};
    q.type = armci_call_type(&q, datatype);
    return vectors_nb(&q, iov, n, handle);
}
