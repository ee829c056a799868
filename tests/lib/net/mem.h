/* The transport in one process, for tests and simulation: what is sent is there when the other end polls. */
#ifndef KEEL_TESTS_LIB_NET_MEM_H
#define KEEL_TESTS_LIB_NET_MEM_H

#include "runtime/net/transport.h"

extern const struct tp_table tp_mem; /* host is a name; addresses are only valid in this process */
#endif
