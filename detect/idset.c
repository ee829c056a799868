#include "detect/idset.h"

#include <stdlib.h>
#include <string.h>

enum { SPARSE_MAX = 64 }; /* ranges: so few stay ranges however close they lie */

/* ------------------------------------------------------------------------------------------------ as bits */

static uint64_t word_at(const struct idset *s, int id)
{
    return s->b[id / IDBLOCK_IDS].word[id % IDBLOCK_IDS / 64];
}

static bool bits_has(const struct idset *s, int id)
{
    return id / IDBLOCK_IDS < s->n_blocks && word_at(s, id) >> id % 64 & 1;
}

static void bits_put(struct idset *s, int id, bool in)
{
    uint64_t *word = &s->b[id / IDBLOCK_IDS].word[id % IDBLOCK_IDS / 64], bit = 1ull << id % 64;
    *word = in ? *word | bit : *word & ~bit;
}

/* Beside what is in it already. */
static void bits_put_range(struct idset *s, int lo, int hi)
{
    for (int id = lo; id <= hi; id++)
        bits_put(s, id, true);
}

static void bits_count(struct idset *s)
{
    s->count = 0;
    for (int i = 0; i < s->n_blocks; i++) {
        s->b[i].before = s->count;
        for (int k = 0; k < IDBLOCK_WORDS; k++)
            s->count += __builtin_popcountll(s->b[i].word[k]);
    }
}

static bool bits_reserve(struct idset *s, int id)
{
    int n = id / IDBLOCK_IDS + 1;
    if (n <= s->n_blocks)
        return true;
    struct idblock *b = realloc(s->b, (size_t)n * sizeof *b);
    if (!b)
        return false;
    for (int i = s->n_blocks; i < n; i++)
        b[i] = (struct idblock){.before = s->count};
    s->b = b;
    s->n_blocks = n;
    return true;
}

static void bits_change(struct idset *s, int id, bool in)
{
    bits_put(s, id, in);
    s->count += in ? 1 : -1;
    for (int i = id / IDBLOCK_IDS + 1; i < s->n_blocks; i++)
        s->b[i].before += in ? 1 : -1;
}

static int bits_below(const struct idset *s, int id)
{
    const struct idblock *b = &s->b[id / IDBLOCK_IDS];
    if (id / IDBLOCK_IDS >= s->n_blocks)
        return s->count;
    int n = b->before;
    for (int k = 0; k < id % IDBLOCK_IDS / 64; k++)
        n += __builtin_popcountll(b->word[k]);
    return n + __builtin_popcountll(word_at(s, id) & ((1ull << id % 64) - 1));
}

/* The least from `from` on whose bit is `in`, or the end of the blocks. */
static int bits_find(const struct idset *s, int from, bool in)
{
    int end = s->n_blocks * IDBLOCK_IDS;
    for (int id = from; id < end; id = (id / 64 + 1) * 64) {
        uint64_t word = (in ? word_at(s, id) : ~word_at(s, id)) & ~0ull << id % 64;
        if (word)
            return id / 64 * 64 + __builtin_ctzll(word);
    }
    return from > end ? from : end;
}

static int bits_nth_out(const struct idset *s, int k)
{
    if (k >= s->n_blocks * IDBLOCK_IDS - s->count)
        return k + s->count;
    int lo = 0, hi = s->n_blocks; /* the last block with at most k ids out of the set before it */
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        *(mid * IDBLOCK_IDS - s->b[mid].before <= k ? &lo : &hi) = mid;
    }
    k -= lo * IDBLOCK_IDS - s->b[lo].before;
    int word = 0, out;
    while ((out = 64 - __builtin_popcountll(s->b[lo].word[word])) <= k) {
        k -= out;
        word++;
    }
    uint64_t rest = ~s->b[lo].word[word];
    while (k--)
        rest &= rest - 1;
    return lo * IDBLOCK_IDS + word * 64 + __builtin_ctzll(rest);
}

/* ------------------------------------------------------------------------------------------------ as ranges */

/* The first range that ends at id or above; s->n: none does. */
static int find(const struct idset *s, int id)
{
    int lo = 0, hi = s->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->r[mid].hi < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool idset_has(const struct idset *s, int id)
{
    if (s->b)
        return bits_has(s, id);
    int i = find(s, id);
    return i < s->n && s->r[i].lo <= id;
}

int idset_below(const struct idset *s, int id)
{
    if (s->b)
        return bits_below(s, id);
    int i = find(s, id);
    if (i == s->n)
        return s->count;
    return s->r[i].before + (id > s->r[i].lo ? id - s->r[i].lo : 0);
}

int idset_next(const struct idset *s, int from)
{
    if (s->b) {
        int id = bits_find(s, from, true);
        return bits_has(s, id) ? id : -1;
    }
    int i = find(s, from);
    if (i == s->n)
        return -1;
    return s->r[i].lo > from ? s->r[i].lo : from;
}

int idset_next_out(const struct idset *s, int from)
{
    if (s->b)
        return bits_find(s, from, false);
    int i = find(s, from);
    return i < s->n && s->r[i].lo <= from ? s->r[i].hi + 1 : from; /* ranges do not touch */
}

int idset_nth_out(const struct idset *s, int k)
{
    if (s->b)
        return bits_nth_out(s, k);
    int lo = 0, hi = s->n; /* the ranges that lie below the k-th: those with at most k ids out of the set before them */
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->r[mid].lo - s->r[mid].before <= k)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == 0 ? k : k + s->r[lo - 1].before + (s->r[lo - 1].hi - s->r[lo - 1].lo + 1);
}

int idset_common(const struct idset *a, const struct idset *b)
{
    int n = 0;
    for (int end, id = idset_next(a, 0); id >= 0; id = idset_next(a, end)) {
        end = idset_next_out(a, id);
        n += idset_below(b, end) - idset_below(b, id);
    }
    return n;
}

static bool reserve(struct idset *s, int n)
{
    if (n < 1 || n <= s->cap)
        return true;
    int cap = 2 * s->cap > n ? 2 * s->cap : n;
    struct idrange *r = realloc(s->r, (size_t)cap * sizeof *r);
    if (!r)
        return false;
    s->r = r;
    s->cap = cap;
    return true;
}

static void count_from(struct idset *s, int i)
{
    for (; i < s->n; i++)
        s->r[i].before = i ? s->r[i - 1].before + s->r[i - 1].hi - s->r[i - 1].lo + 1 : 0;
}

static void remove_at(struct idset *s, int i)
{
    s->n--;
    memmove(&s->r[i], &s->r[i + 1], (size_t)(s->n - i) * sizeof *s->r);
}

static bool insert_at(struct idset *s, int i, int lo, int hi)
{
    if (!reserve(s, s->n + 1))
        return false;
    memmove(&s->r[i + 1], &s->r[i], (size_t)(s->n - i) * sizeof *s->r);
    s->r[i].lo = lo;
    s->r[i].hi = hi;
    s->n++;
    return true;
}

/* n ranges or more, up to `highest`, take less room so. */
static bool are_bits_less(int n, int highest)
{
    return n > SPARSE_MAX &&
           (size_t)n * sizeof(struct idrange) > (size_t)(highest / IDBLOCK_IDS + 1) * sizeof(struct idblock);
}

static bool to_bits(struct idset *s, int highest)
{
    struct idset bits = {0};
    if (!bits_reserve(&bits, highest))
        return false;
    for (int i = 0; i < s->n; i++)
        bits_put_range(&bits, s->r[i].lo, s->r[i].hi);
    bits_count(&bits);
    free(s->r);
    *s = bits;
    return true;
}

static bool is_sparse(struct idset *s, int id)
{
    int highest = s->n && s->r[s->n - 1].hi > id ? s->r[s->n - 1].hi : id;
    return !are_bits_less(s->n + 1, highest) || !to_bits(s, highest);
}

bool idset_add(struct idset *s, int id)
{
    if (idset_has(s, id))
        return true;
    if (s->b || !is_sparse(s, id)) {
        if (!bits_reserve(s, id))
            return false;
        bits_change(s, id, true);
        return true;
    }
    int i = find(s, id);
    bool left = i > 0 && s->r[i - 1].hi == id - 1, right = i < s->n && s->r[i].lo == id + 1;
    if (left && right) {
        s->r[i - 1].hi = s->r[i].hi;
        remove_at(s, i);
    } else if (left) {
        s->r[i - 1].hi = id;
    } else if (right) {
        s->r[i].lo = id;
    } else if (!insert_at(s, i, id, id)) {
        return false;
    }
    s->count++;
    count_from(s, i > 0 ? i - 1 : 0);
    return true;
}

bool idset_del(struct idset *s, int id)
{
    if (!idset_has(s, id))
        return true;
    if (s->b || !is_sparse(s, id)) {
        bits_change(s, id, false);
        return true;
    }
    int i = find(s, id);
    struct idrange *r = &s->r[i];
    if (r->lo == r->hi) {
        remove_at(s, i);
    } else if (r->lo == id) {
        r->lo++;
    } else if (r->hi == id) {
        r->hi--;
    } else {
        int hi = r->hi;
        if (!insert_at(s, i + 1, id + 1, hi))
            return false;
        s->r[i].hi = id - 1;
    }
    s->count--;
    count_from(s, i);
    return true;
}

static bool bits_copy(struct idset *to, const struct idset *from)
{
    if (!bits_reserve(to, from->n_blocks * IDBLOCK_IDS - 1))
        return false;
    free(to->r);
    to->r = NULL;
    to->n = to->cap = 0;
    memcpy(to->b, from->b, (size_t)from->n_blocks * sizeof *to->b);
    for (int i = from->n_blocks; i < to->n_blocks; i++)
        to->b[i] = (struct idblock){.before = from->count};
    to->count = from->count;
    return true;
}

bool idset_copy(struct idset *to, const struct idset *from)
{
    if (from->b)
        return bits_copy(to, from);
    idset_clear(to);
    if (!reserve(to, from->n))
        return false;
    if (from->n)
        memcpy(to->r, from->r, (size_t)from->n * sizeof *to->r);
    to->n = from->n;
    to->count = from->count;
    return true;
}

/* A range behind, or into, the last one. There is room for it. */
static void append(struct idset *s, int lo, int hi)
{
    struct idrange *last = s->n ? &s->r[s->n - 1] : NULL;
    if (last && lo <= last->hi + 1)
        last->hi = hi > last->hi ? hi : last->hi;
    else
        s->r[s->n++] = (struct idrange){.lo = lo, .hi = hi};
}

static bool bits_union(struct idset *to, const struct idset *from, const int *ids, int n, int highest)
{
    if (!idset_copy(to, from) || (!to->b && !to_bits(to, highest)) || !bits_reserve(to, highest))
        return false;
    for (int k = 0; k < n; k++)
        bits_put(to, ids[k], true);
    bits_count(to);
    return true;
}

bool idset_union(struct idset *to, const struct idset *from, const int *ids, int n)
{
    int highest = from->n ? from->r[from->n - 1].hi : 0;
    highest = n && ids[n - 1] > highest ? ids[n - 1] : highest;
    if (from->b || are_bits_less(from->n + n, highest))
        return bits_union(to, from, ids, n, highest);
    idset_clear(to);
    if (!reserve(to, from->n + n))
        return false;
    for (int i = 0, k = 0; i < from->n || k < n;) {
        if (k == n || (i < from->n && from->r[i].lo <= ids[k])) {
            append(to, from->r[i].lo, from->r[i].hi);
            i++;
        } else {
            append(to, ids[k], ids[k]);
            k++;
        }
    }
    count_from(to, 0);
    if (to->n)
        to->count = to->r[to->n - 1].before + to->r[to->n - 1].hi - to->r[to->n - 1].lo + 1;
    return true;
}

void idset_clear(struct idset *s)
{
    free(s->b);
    s->b = NULL;
    s->n = s->n_blocks = s->count = 0;
}

void idset_free(struct idset *s)
{
    free(s->r);
    free(s->b);
    *s = (struct idset){.r = 0};
}
