#include "apps/npb/share.h"

struct share share_of(size_t total, int parts, int which)
{
    size_t each = total / (size_t)parts, more = total % (size_t)parts, at = (size_t)which;
    return (struct share){.first = at * each + (at < more ? at : more), .count = each + (at < more)};
}

bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}
