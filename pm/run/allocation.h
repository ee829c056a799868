/* The hosts that a batch system has given to this shell. */
#ifndef KEEL_PM_ALLOCATION_H
#define KEEL_PM_ALLOCATION_H

#include "pm/run/hosts.h"

/* Appends them. False: there is no batch system's allocation. Ends the program with a line if there is one that
 * cannot be read. */
bool allocation_hosts(struct host_list *hosts);

/* All of a text, to be freed; ends the program with a line if runtime/base/user_file.h refuses it. */
char *read_whole_file(const char *path);
#endif
