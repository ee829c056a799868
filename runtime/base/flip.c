#include "runtime/base/flip.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/number.h"
#include "runtime/base/rng.h"

static const char *const wheres[] = {"send", "flight", "rest", NULL};

const char *flip_where_name(enum flip_where where)
{
    return wheres[where];
}

/* ---- the words ---- */

struct reading {
    struct flip_rule *out;
    char *why;
    size_t size;
    bool rate_given, count_given;
    unsigned keys; /* a bit for each of keys[] that was given */
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct reading *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, r->size, format, args);
    va_end(args);
    return false;
}

static bool read_rate(struct reading *r, const char *value)
{
    r->rate_given = true;
    return number_real(value, 0, 1, &r->out->rate) || wrong(r, "rate=%s is no number from 0 to 1", value);
}

static bool read_where(struct reading *r, const char *value)
{
    for (int i = 0; wheres[i]; i++)
        if (strcmp(value, wheres[i]) == 0) {
            r->out->where = (enum flip_where)i;
            return true;
        }
    return wrong(r, "where=%s is none of send, flight, rest", value);
}

static bool read_whole(struct reading *r, const char *key, const char *value, int64_t low, int64_t high, int64_t *out)
{
    return number_whole(value, low, high, out) ||
           wrong(r, "%s=%s is no whole number from %" PRId64 " on", key, value, low);
}

static bool read_one(struct reading *r, const char *key, const char *value, int64_t low, uint64_t *out)
{
    int64_t n;
    if (!read_whole(r, key, value, low, INT64_MAX, &n))
        return false;
    *out = (uint64_t)n;
    return true;
}

static bool read_place(struct reading *r, const char *key, const char *value, int *out)
{
    int64_t n;
    if (!read_whole(r, key, value, 0, INT32_MAX, &n))
        return false;
    *out = (int)n;
    return true;
}

/* "10..20", "10..", "10". */
static bool read_steps(struct reading *r, char *value)
{
    char *dots = strstr(value, "..");
    if (dots)
        *dots = '\0';
    if (!read_one(r, "step", value, 0, &r->out->from))
        return false;
    r->out->to = dots ? FLIP_NO_END : r->out->from;
    if (dots && dots[2] && !read_one(r, "step", dots + 2, 0, &r->out->to))
        return false;
    return r->out->from <= r->out->to || wrong(r, "step=%s..%s ends before it begins", value, dots + 2);
}

static bool is_first(struct reading *r, const char *word)
{
    static const char *const keys[] = {"rate", "where", "set", "rank", "step", "seed", "count"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(word, keys[i]) == 0) {
            bool first = !(r->keys >> i & 1);
            r->keys |= 1U << i;
            return first || wrong(r, "%s= is given twice", word);
        }
    return true;
}

static bool read_word(struct reading *r, char *word)
{
    char *value = strchr(word, '=');
    if (!value)
        return wrong(r, "'%s' is no KEY=VALUE", word);
    *value++ = '\0';
    if (!is_first(r, word))
        return false;
    if (strcmp(word, "rate") == 0)
        return read_rate(r, value);
    if (strcmp(word, "where") == 0)
        return read_where(r, value);
    if (strcmp(word, "set") == 0)
        return read_place(r, word, value, &r->out->set);
    if (strcmp(word, "rank") == 0)
        return read_place(r, word, value, &r->out->rank);
    if (strcmp(word, "step") == 0)
        return read_steps(r, value);
    if (strcmp(word, "seed") == 0)
        return read_one(r, word, value, 0, &r->out->seed);
    if (strcmp(word, "count") != 0)
        return wrong(r, "'%s' is none of rate, where, set, rank, step, count, seed", word);
    r->count_given = true;
    return read_one(r, word, value, 1, &r->out->count);
}

bool flip_rule_parse(const char *text, struct flip_rule *out, char *why, size_t size)
{
    struct reading r = {.out = out, .why = why, .size = size};
    char copy[FLIP_TEXT_MAX];
    *out = (struct flip_rule){.rate = 1,
                              .where = FLIP_SEND,
                              .set = FLIP_ANY,
                              .rank = FLIP_ANY,
                              .to = FLIP_NO_END,
                              .count = FLIP_NO_END,
                              .seed = 1};
    if (strlen(text) >= sizeof copy)
        return wrong(&r, "it is too long");
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        snprintf(copy, sizeof copy, "%.*s", (int)strcspn(at, ","), at);
        if (!read_word(&r, copy))
            return false;
    }
    if (!r.rate_given && !r.count_given)
        return wrong(&r, "it says neither rate= nor count=");
    return true;
}

/* As short as it reads back. */
static int rate_digits(double rate)
{
    char text[64];
    for (int digits = 1; digits < 17; digits++) {
        double back;
        snprintf(text, sizeof text, "%.*g", digits, rate);
        if (number_real(text, 0, 1, &back) && back == rate) // NOLINT(clang-diagnostic-float-equal) to the bit
            return digits;
    }
    return 17;
}

const char *flip_rule_text(const struct flip_rule *rule, char out[FLIP_TEXT_MAX])
{
    int n = snprintf(out, FLIP_TEXT_MAX, "rate=%.*g,where=%s,step=%" PRIu64 "..", rate_digits(rule->rate), rule->rate,
                     wheres[rule->where], rule->from);
    if (rule->to != FLIP_NO_END)
        n += snprintf(out + n, FLIP_TEXT_MAX - (size_t)n, "%" PRIu64, rule->to);
    n += snprintf(out + n, FLIP_TEXT_MAX - (size_t)n, ",seed=%" PRIu64, rule->seed);
    if (rule->set != FLIP_ANY)
        n += snprintf(out + n, FLIP_TEXT_MAX - (size_t)n, ",set=%d", rule->set);
    if (rule->rank != FLIP_ANY)
        n += snprintf(out + n, FLIP_TEXT_MAX - (size_t)n, ",rank=%d", rule->rank);
    if (rule->count != FLIP_NO_END)
        snprintf(out + n, FLIP_TEXT_MAX - (size_t)n, ",count=%" PRIu64, rule->count);
    return out;
}

/* ---- in a process ---- */

static uint64_t mixed(uint64_t so_far, uint64_t value)
{
    struct rng r;
    rng_seed(&r, so_far ^ value);
    return rng_u64(&r);
}

bool flip_init(struct flip *f, const struct flip_rule *rule, int number, int set, int rank)
{
    *f = (struct flip){.rule = *rule};
    f->draw = mixed(mixed(mixed(rule->seed, (uint64_t)number), (uint64_t)set), (uint64_t)rank);
    return (rule->set == FLIP_ANY || rule->set == set) && (rule->rank == FLIP_ANY || rule->rank == rank);
}

bool flip_hits(struct flip *f, uint64_t step, uint64_t bits, uint64_t *bit)
{
    struct rng r;
    uint64_t n = f->operations++;
    if (step < f->rule.from || step > f->rule.to)
        return false;
    f->was_there = true;
    f->had_bits = f->had_bits || bits > 0;
    if (f->flips >= f->rule.count || bits == 0)
        return false;
    rng_seed(&r, mixed(f->draw, n));
    if (rng_double(&r) >= f->rule.rate)
        return false;
    *bit = rng_below(&r, bits);
    f->flips++;
    return true;
}
