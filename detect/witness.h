/* The witness of a node: a process beside the agent that answers one question in its place: does the agent's process
 * wait for a processor or a disk, as on a busy machine, or was it stopped? Only the second is a reason not to be
 * patient.
 *
 * The question is a sealed datagram (SEAL_QUESTION) with a number, the answer another (SEAL_ANSWER) with the same
 * number and one byte, enum witness_answer. The witness ends with the agent, has none of its descriptors, and no signal
 * but SIGKILL and SIGSTOP reaches it. It asks for real-time priority; if it has it, not even a busy machine keeps it
 * from answering (struct witness, prompt).
 *
 * threads   witness_start is called by the thread that lives as long as the agent: the kernel ends the witness with
 *           that thread.
 *           The others from any one thread.
 * blocking  none. */
#ifndef KEEL_DETECT_WITNESS_H
#define KEEL_DETECT_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/status.h>

#include "detect/seal.h"

enum witness_answer { WITNESS_RUNS = 1, WITNESS_STOPPED };

struct witness {
    int pid;       /* 0: there is none */
    uint16_t port; /* UDP, on the agent's address */
    bool prompt;   /* it and this process's helper thread may have real-time priority */
};

/* A witness of this process. host: numeric address; seal is copied. KEEL_ERR_SYSTEM, logged: there is none, and others
 * must be patient. */
keel_status witness_start(const struct seal *seal, const char *host, struct witness *out);
void witness_end(struct witness *w);

/* As high a priority as the calling thread may have. False if that is not a real-time one. */
bool witness_raise_priority(void);
#endif
