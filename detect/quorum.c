/* Who may decide.
 *
 * A decision leaves some members of the view out. It is admissible if those who stay are
 *   (i)  a majority of the view, or exactly half of it with its lowest id; or
 *   (ii) all that is left: everybody left out is dead for certain (its kernel said so).
 * Any two admissible sets share a member, or one consists of dead members only: two (i) sets by counting; and the
 * live members of any set are inside every (ii) set. So there is never a second history among the living, whatever the
 * clocks do; those who have ended with the job are another matter (contact.c, "own absence"). Not counting the
 * certainly dead while others are merely silent would be more available but is unsafe: the silent ones may have decided
 * together with the dead ones before those died (docs/adr/0030). */
#include "detect/member_internal.h"

bool quorum_admissible(int total, int stay, bool certain, bool lowest)
{
    return 2 * stay > total || (certain && stay > 0) || (2 * stay == total && lowest);
}
