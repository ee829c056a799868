/* How large a job is at most. Every part that keeps or sends something for each node or rank is held against these. */
#ifndef KEEL_BASE_LIMITS_H
#define KEEL_BASE_LIMITS_H

enum {
    /* Nodes with spares and those that may come later (settings_ids). A slot's number has 16 bits in a message and in
     * the key of a remote write (wire/wire.h), a node's 20 in a ballot (detect/datagram.h); what is kept for each node
     * is kept at each node, and keelrun's first orders name all of them. The detector alone has been simulated with
     * more (MEMBER_NODES_MAX). */
    LIMIT_NODES = 4096,
    LIMIT_RANKS = 1 << 20,
};
#endif
