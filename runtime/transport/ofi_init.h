#ifndef KEEL_TRANSPORT_OFI_INIT_H
#define KEEL_TRANSPORT_OFI_INIT_H

/* Before the first call into libfabric. Any thread; blocks for the initialisation. */
void ofi_init(void);
#endif
