#ifndef KEEL_TEST_LAYOUT_H
#define KEEL_TEST_LAYOUT_H

struct layout {
    const char *name;
    long a, b;
};

/* Each ends with a NULL name. */
extern const struct layout layout_ours[], layout_debian[];
#endif
