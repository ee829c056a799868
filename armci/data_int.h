/* Between data.c and data_vector.c. */
#ifndef ARMCI_DATA_INT_H
#define ARMCI_DATA_INT_H

#include "armci/armci_int.h"

enum what { PUT, GET, ACC };

/* One call. */
struct armci_call {
    const char *name;
    enum what what;
    int proc;
    keel_type type; /* ACC */
    const void *scale;
    bool blocks;
    armci_hdl_t *handle; /* NULL: implicit */
};

/* Ends the job if there is no such process, or the library does not run. */
void armci_call_check(const struct armci_call *q);
/* Of an accumulate: datatype is ARMCI's. Ends the job if there is no such one. */
keel_type armci_call_type(const struct armci_call *q, int datatype);
/* Returns 0. */
int armci_call_contiguous(const struct armci_call *q, void *remote, void *local, int bytes);
#endif
