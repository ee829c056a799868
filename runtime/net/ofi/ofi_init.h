#ifndef KEEL_NET_OFI_OFI_INIT_H
#define KEEL_NET_OFI_OFI_INIT_H

#include <stdbool.h>

/* Before the first call into libfabric. Any thread; blocks for the initialisation. False: it cannot be used, which has
 * been said. devices: this process will use RDMA devices through libfabric. What the first call of a process said is
 * so for all. */
bool ofi_init(bool devices);
#endif
