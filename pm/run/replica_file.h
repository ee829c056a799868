/* A file that says which native rank is which rank of which set (base/replica.h). Pure. # begins a comment.
 *
 *   RANK NATIVE REPLICA     a line for each native rank; replica i of a rank is in set i
 *   racks                   replicas of a rank are in different racks, too */
#ifndef KEEL_PM_REPLICA_FILE_H
#define KEEL_PM_REPLICA_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* native [ranks * replicas] as in struct replica_map. False: why says what is wrong, and where. */
bool replica_file_parse(const char *text, int ranks, int replicas, int *native, bool *racks, char *why, size_t len);
#endif
