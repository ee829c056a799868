/* libfabric, opened when the first call is made (docs/adr/0020). Its calls that are not behind an object's table
 * have their names here. */
#ifndef KEEL_NET_OFI_FABRIC_H
#define KEEL_NET_OFI_FABRIC_H

#include <rdma/fabric.h>
#include <stdbool.h>

/* What libfabric exports: its result, its name without fi_, its arguments. */
#define FABRIC_CALLS(X)                                                                                                \
    X(int, getinfo,                                                                                                    \
      (uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,           \
       struct fi_info **info))                                                                                         \
    X(void, freeinfo, (struct fi_info * info))                                                                         \
    X(struct fi_info *, dupinfo, (const struct fi_info *info))                                                         \
    X(int, fabric, (struct fi_fabric_attr * attr, struct fid_fabric * *fabric, void *context))                         \
    X(int, getparams, (struct fi_param * *params, int *count))                                                         \
    X(void, freeparams, (struct fi_param * params))                                                                    \
    X(const char *, strerror, (int errnum))

struct fabric_calls {
#define X(type, name, args) type(*name) args; // NOLINT(bugprone-macro-parentheses): a declaration
    FABRIC_CALLS(X)
#undef X
};

/* Valid after fabric_load. */
extern struct fabric_calls fabric_calls;

/* False: there is no libfabric, or one of another interface than Keel was built with; a line has said so. Any
 * thread. */
bool fabric_load(void);

/* fi_getinfo for the provider that hints name, on this address of ours. FI_PROVIDER, by which a user chooses a provider
 * for other programs or for MPI, does not hide it. */
int fabric_find(const char *host, const struct fi_info *hints, struct fi_info **info);
#endif
