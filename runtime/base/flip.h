/* Wrong bits on purpose (keelrun --inject): rules as a user writes them, and which operations of which process get a
 * wrong bit by them. The same rules and the same operations give the same bits: no I/O, no clock.
 * (tests/lib/net/inject.h is something else: a transport that loses connections, for tests.) */
#ifndef KEEL_BASE_FLIP_H
#define KEEL_BASE_FLIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the program's memory before it is sent; in what was sent, before it is stored; in the memory of a segment. */
enum flip_where { FLIP_SEND, FLIP_FLIGHT, FLIP_REST };
enum { FLIP_RULES_MAX = 8, FLIP_TEXT_MAX = 256, FLIP_ANY = -1 };
#define FLIP_NO_END UINT64_MAX

struct flip_rule {
    double rate; /* of operations that get one */
    enum flip_where where;
    int set, rank;     /* FLIP_ANY: each */
    uint64_t from, to; /* steps (keel_timestep), both included; to FLIP_NO_END: from there on */
    uint64_t count;    /* so many at most in each process; FLIP_NO_END: any number */
    uint64_t seed;
};

struct flip_rules {
    int n;
    struct flip_rule rule[FLIP_RULES_MAX];
};

const char *flip_where_name(enum flip_where where);
/* Of "rate=1e-6,where=send,set=0,rank=3,step=10..20,count=1,seed=7" in any order, of which each but one may be missing.
 * False: why says what is wrong. */
bool flip_rule_parse(const char *text, struct flip_rule *out, char *why, size_t size);
/* What flip_rule_parse reads as that rule. Returns out. */
const char *flip_rule_text(const struct flip_rule *rule, char out[FLIP_TEXT_MAX]);

/* A rule in a process that it covers. */
struct flip {
    struct flip_rule rule;
    uint64_t draw;       /* what its random numbers begin with */
    uint64_t operations; /* so far, which all draw */
    uint64_t flips;      /* so far */
    bool was_there;      /* an operation was at one of its steps */
    bool had_bits;       /* and had bits that could become wrong */
};

/* number: the rule's, so that rules that are alike draw different numbers. False: the rule is not of this process. */
bool flip_init(struct flip *f, const struct flip_rule *rule, int number, int set, int rank);
/* One more operation: does one of its bits [0, bits) become wrong? bits 0: it has none, and is counted only. */
bool flip_hits(struct flip *f, uint64_t step, uint64_t bits, uint64_t *bit);
#endif
