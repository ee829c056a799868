/* Types of elements. */
#ifndef KEEL_TYPE_H
#define KEEL_TYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_type {
    KEEL_BYTE,
    KEEL_INT32,
    KEEL_INT64,
    KEEL_UINT32,
    KEEL_UINT64,
    KEEL_FLOAT,
    KEEL_DOUBLE,
    KEEL_COMPLEX_FLOAT, /* real, imaginary */
    KEEL_COMPLEX_DOUBLE /* real, imaginary */
} keel_type;

/* Bytes of an element; 0 if there is no such type.
 * threads   any.   blocks  no. */
size_t keel_type_size(keel_type type);

#ifdef __cplusplus
}
#endif
#endif
