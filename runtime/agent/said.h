/* What the other nodes say of a segment that a rank here allocates: that they have their copies of it, or why they
 * cannot. Pure.
 *
 *   who allocates            is answered when                                       a node that cannot is
 *   a member of a group      all live nodes have said that they can, or one that    what the rank is told, who says it
 *                            it cannot                                              to the group
 *   a rank, before all vote  the silent ones have: those that have copies, and no   what the rank is told, and says to
 *                            rank that takes part and would say it itself           all; of others their ranks do
 *   ... and after it         all live nodes have                                    asked again: it has it, or ends
 *
 * A node that dies, or is born later and says it then, concerns nobody's answer but by that. */
#ifndef KEEL_AGENT_SAID_H
#define KEEL_AGENT_SAID_H

#include <stdint.h>

#include <keel/status.h>

#include "runtime/view/view.h"

enum said_by { SAID_BY_ALL, SAID_BY_SILENT };

/* silent[node]: bit c, it has copies of class c, and no rank of its own takes part. */
void said_silent(const struct view *v, uint8_t *silent);
/* What they say together of a segment of that class. said[node]: KEEL_IN_PROGRESS, it was asked and has not answered.
 * KEEL_OK: all have it; KEEL_IN_PROGRESS: some have not answered, and nobody has said no; else what one has said. */
keel_status said_together(const struct view *v, int self, const keel_status *said, const uint8_t *silent,
                          unsigned class, enum said_by by);
#endif
