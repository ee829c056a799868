/* Is the limit for silence (--silence) one that this machine's load allows? */
#include "pm/plane.h"

#include <stdio.h>

#include "detect/lateness.h"
#include "detect/member.h"
#include "runtime/base/clock.h"

bool plane_allows_silence(const struct job_settings *s, char why[PLANE_WHY_MAX])
{
    if (s->silence_ms >= SILENCE_DEFAULT_MS)
        return true;
    uint64_t late = lateness_measure(SILENCE_MIN_MS * KEEL_NS_PER_MS), ms = late / KEEL_NS_PER_MS;
    if (MEMBER_LATE_TIMES * ms <= (uint64_t)s->silence_ms)
        return true;
    snprintf(why, PLANE_WHY_MAX,
             "--silence %dms is less than its machine's load allows: it was %llu ms late, of which %d times must fit: "
             "%llums",
             s->silence_ms, (unsigned long long)ms, (int)MEMBER_LATE_TIMES,
             (unsigned long long)(MEMBER_LATE_TIMES * ms));
    return false;
}
