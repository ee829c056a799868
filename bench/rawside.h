/* One side of raw libfabric, between rawlib.c and rawside.c. */
#ifndef KEEL_BENCH_RAWSIDE_H
#define KEEL_BENCH_RAWSIDE_H

#include <rdma/fabric.h>

#include "bench/rawlib.h"

enum { KEY = 7, MESSAGE_MAX = 4096, RECVS = 8 };

struct side {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *pep;
    struct fid_mr *mr;
    struct fid_ep *ep[RAW_TARGETS_MAX];
    uint8_t *memory;
    uint8_t *messages;
};

/* True: rc is not 0, and a line on stderr says so. */
bool raw_failed(const char *what, long rc);
bool raw_side_open(struct side *side, const char *host, const char *provider, size_t memory);
void raw_side_close(struct side *side);
bool raw_ep_open(struct side *side, struct fi_info *info, struct fid_ep **ep);
/* The next event of connecting; negative: none came in time. */
int raw_await_cm(struct side *side, struct fi_info **info);
#endif
