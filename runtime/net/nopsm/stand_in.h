/* Stand-ins for libpsm_infinipath and libpsm2 on machines without their devices (runtime/net/ofi/fabric.c): all calls
 * that libfabric's providers make of them are there, and fail, as they do in the libraries themselves where they find
 * no device. */
#ifndef KEEL_NET_NOPSM_STAND_IN_H
#define KEEL_NET_NOPSM_STAND_IN_H

#define STAND_IN_CALL(name)                                                                                            \
    __attribute__((visibility("default"))) int name(void);                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 1;                                                                                                      \
    }

#define STAND_IN_TEXT(name)                                                                                            \
    __attribute__((visibility("default"))) const char *name(int error);                                                \
    const char *name(int error)                                                                                        \
    {                                                                                                                  \
        (void)error;                                                                                                   \
        return "no device (a stand-in of Keel's)";                                                                     \
    }
#endif
