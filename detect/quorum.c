/* Who may decide.
 *
 * A decision leaves some members of the view out. It is admissible if those who stay are
 *   (i)  a majority of the view, or exactly half of it with its lowest id; or
 *   (ii) all that is left: everybody left out is dead for certain (its kernel said so).
 * Any two admissible sets share a member, or one consists of dead members only: two (i) sets by counting; and the
 * live members of any set are inside every (ii) set. So there is never a second history among the living, whatever the
 * clocks do; those who have ended with the job are another matter (detector.c, "own absence"). Not counting the certainly
 * dead while others are merely silent would be more available but is unsafe: the silent ones may have decided together
 * with the dead ones before those died (docs/adr/0030). */
#include "detect/member_internal.h"

bool quorum_admissible(const uint64_t *view, const uint64_t *out, const uint64_t *certain, unsigned words)
{
    int total = 0, stay = 0;
    bool all_certain = true;
    for (unsigned i = 0; i < words; i++) {
        total += __builtin_popcountll(view[i]);
        stay += __builtin_popcountll(view[i] & ~out[i]);
        if (view[i] & out[i] & ~certain[i])
            all_certain = false;
    }
    if (2 * stay > total || (all_certain && stay > 0))
        return true;
    return 2 * stay == total && !bitset_has(out, bitset_next(view, words, 0));
}
