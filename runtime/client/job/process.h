/* libkeel's one instance. */
#ifndef KEEL_CLIENT_JOB_PROCESS_H
#define KEEL_CLIENT_JOB_PROCESS_H

#include "runtime/client/client.h"

extern struct client process_client;
#endif
