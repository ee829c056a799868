/* What a kernel is, and which there are. */
#ifndef KEEL_NPB_KERNEL_H
#define KEEL_NPB_KERNEL_H

#include "apps/npb/common.h"
#include "apps/npb/outcome.h"

struct npb_kernel {
    const char *name;
    /* Can so many ranks run it? If not, false and one line that says which numbers can. */
    bool (*fits)(const struct npb *npb, struct npb_complaint *why);
    /* All ranks call it and have the same checks afterwards. A call of Keel's that fails ends the process (must). */
    void (*run)(struct npb *npb, struct outcome *out);
};

extern const struct npb_kernel npb_ep, npb_is, npb_cg, npb_mg, npb_ft, npb_lu;

/* The kernel of the name; NULL: there is none. */
const struct npb_kernel *npb_kernel_find(const char *name);

#endif
