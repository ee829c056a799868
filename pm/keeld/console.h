/* Who comes to us: keelctl over a unix socket, and other nodes' agents over the job's interface. */
#ifndef KEEL_PM_KEELD_CONSOLE_H
#define KEEL_PM_KEELD_CONSOLE_H

#include "pm/wire/conn.h"

#include <stdbool.h>

struct keeld;

/* A connection made to us: an agent that reports to the PMI root, or keelctl. */
struct keeld_guest {
    struct keeld *agent;
    struct keeld_guest *next;
    struct pm_conn *conn;
    int node;           /* of an agent, -1 otherwise */
    bool attached;      /* keelctl attach */
    uint64_t verify;    /* the audit that it waits for, 0: none */
    uint64_t rebalance; /* and the answer about moves */
    bool local;         /* keelctl: the kernel says that it is of this machine, and of the job's user */
    bool known;         /* has proved itself: it belongs to the job */
    bool added;         /* is no member yet: adding.c */
};

struct keeld_console {
    int fd; /* unix socket for keelctl; -1: none */
    uv_poll_t *watch;
    uv_tcp_t listener; /* on the job's interface, for agents */
    int port;          /* its; 0: it does not listen yet */
    struct keeld_guest *guests;
    int guest_count;
    uint64_t verifies; /* audits asked for */
    uint64_t rebalances;
};

void keeld_console_open(struct keeld *a);   /* keelctl finds this node; else a line says so */
bool keeld_console_listen(struct keeld *a); /* for agents; self_host must be known */
void keeld_console_output(struct keeld *a, const void *frame, size_t len);
void keeld_console_over(struct keeld *a);
void keeld_console_verified(struct keeld *a, uint64_t id, const char *json);
/* Hangs up. */
void keeld_console_drop(struct keeld_guest *g);
void keeld_console_rebalanced(struct keeld *a, uint64_t id, const char *json);
void keeld_console_close(struct keeld *a);
#endif
