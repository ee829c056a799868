/* "1 rank", "2 ranks": the noun of a count, for "%d %s". Pure. */
#ifndef KEEL_BASE_PLURAL_H
#define KEEL_BASE_PLURAL_H

static inline const char *plural(long long n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}
#endif
