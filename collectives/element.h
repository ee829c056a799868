/* What a reduction does to elements: types, operations, and one function that applies an operation to arrays.
 *
 * Bits: the same operands in the same order give the same bits on every member of a job (one binary). Which operand is
 * left and which right is the algorithm's to say, so that no result depends on timing.
 * minloc, maxloc: elements are pairs of 16 bytes, the value in the first 8 (its type's size used), a 64-bit signed
 * place in the second 8; of equal values the lowest place wins. */
#ifndef KEEL_COLLECTIVES_ELEMENT_H
#define KEEL_COLLECTIVES_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum element_type {
    ELEMENT_BYTE,
    ELEMENT_INT32,
    ELEMENT_INT64,
    ELEMENT_UINT32,
    ELEMENT_UINT64,
    ELEMENT_FLOAT,
    ELEMENT_DOUBLE,
    ELEMENT_COMPLEX_FLOAT,
    ELEMENT_COMPLEX_DOUBLE,
    ELEMENT_TYPES,
};

enum element_op {
    ELEMENT_SUM,
    ELEMENT_PROD,
    ELEMENT_MIN,
    ELEMENT_MAX,
    ELEMENT_MINLOC,
    ELEMENT_MAXLOC,
    ELEMENT_AND, /* of bits, like or and xor */
    ELEMENT_OR,
    ELEMENT_XOR,
    ELEMENT_USER,
    ELEMENT_OPS,
};

/* right = left op right, n elements. Must be associative; need not be commutative. */
typedef void (*element_user)(const void *left, void *right, size_t n, void *context);

struct element {
    enum element_type type;
    enum element_op op;
    element_user user; /* ELEMENT_USER */
    void *context;
    size_t user_size; /* of an element, ELEMENT_USER only; 0: the type's */
};

/* Is there such an operation on that type? */
bool element_valid(const struct element *e);
size_t element_size(const struct element *e);
/* dst = left op right, n elements; dst is left or right, or overlaps neither. scratch: n elements, needed by a user's
 * operation with dst == left, else NULL will do. */
void element_combine(const struct element *e, void *dst, const void *left, const void *right, size_t n, void *scratch);
#endif
