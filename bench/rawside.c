/* One side of raw libfabric: opened, connected and closed. */
#include "bench/rawside.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool raw_failed(const char *what, long rc)
{
    if (rc)
        fprintf(stderr, "raw libfabric: %s: %s\n", what, fi_strerror((int)-rc));
    return rc != 0;
}

bool raw_side_open(struct side *side, const char *host, const char *provider, size_t memory)
{
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(provider);
    long rc = fi_getinfo(FI_VERSION(1, 17), host, NULL, FI_SOURCE | FI_NUMERICHOST, hints, &side->info);
    fi_freeinfo(hints);
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = 4096};
    side->memory = calloc(1, memory);
    side->messages = calloc(RECVS + 1, MESSAGE_MAX);
    return !raw_failed("fi_getinfo", rc) && side->memory && side->messages &&
           !raw_failed("fi_fabric", fi_fabric(side->info->fabric_attr, &side->fabric, NULL)) &&
           !raw_failed("fi_domain", fi_domain(side->fabric, side->info, &side->domain, NULL)) &&
           !raw_failed("fi_eq_open", fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL)) &&
           !raw_failed("fi_cq_open", fi_cq_open(side->domain, &cq_attr, &side->cq, NULL)) &&
           !raw_failed("fi_mr_reg", fi_mr_reg(side->domain, side->memory, memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                                              KEY, 0, &side->mr, NULL));
}

static void fid_close(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

void raw_side_close(struct side *side)
{
    for (int i = 0; i < RAW_TARGETS_MAX; i++)
        if (side->ep[i])
            fi_close(&side->ep[i]->fid);
    fid_close((struct fid *)side->pep);
    fid_close((struct fid *)side->mr);
    fid_close((struct fid *)side->cq);
    fid_close((struct fid *)side->eq);
    fid_close((struct fid *)side->domain);
    fid_close((struct fid *)side->fabric);
    fi_freeinfo(side->info);
    free(side->memory);
    free(side->messages);
}

bool raw_ep_open(struct side *side, struct fi_info *info, struct fid_ep **ep)
{
    if (raw_failed("fi_endpoint", fi_endpoint(side->domain, info, ep, NULL)) ||
        raw_failed("bind eq", fi_ep_bind(*ep, &side->eq->fid, 0)) ||
        raw_failed("bind cq", fi_ep_bind(*ep, &side->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION)) ||
        raw_failed("bind cq", fi_ep_bind(*ep, &side->cq->fid, FI_RECV)) || raw_failed("fi_enable", fi_enable(*ep)))
        return false;
    for (int i = 0; i < RECVS; i++) {
        uint8_t *buffer = side->messages + i * MESSAGE_MAX;
        if (raw_failed("fi_recv", fi_recv(*ep, buffer, MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, buffer)))
            return false;
    }
    return true;
}

/* Next connection event, or -1 after 10 s. */
int raw_await_cm(struct side *side, struct fi_info **info)
{
    struct {
        struct fi_eq_cm_entry cm;
        uint8_t data[256];
    } entry;
    double deadline = raw_now_us() + 10e6;
    while (raw_now_us() < deadline) {
        uint32_t event;
        ssize_t n = fi_eq_read(side->eq, &event, &entry, sizeof(entry), 0);
        if (n == -FI_EAVAIL)
            return -1;
        if (n < 0)
            continue;
        if (info)
            *info = entry.cm.info;
        return (int)event;
    }
    return -1;
}

/* ---- targets ---- */
