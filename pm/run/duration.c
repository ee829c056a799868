#include "pm/run/duration.h"

#include <string.h>

#define MS_MOST INT64_C(1000000000000)

static bool unit_of(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } known[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"min", 60000}};
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0) {
            *ms = known[i].ms;
            return true;
        }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool duration_parse(const char *text, int64_t *ms, bool *unit)
{
    int64_t number = 0, of_unit, places = 1;
    const char *at = text;
    for (; is_digit(*at) && number < MS_MOST; at++)
        number = 10 * number + (*at - '0');
    if (at == text)
        return false;
    if (*at == '.' && is_digit(at[1]))
        for (at++; is_digit(*at) && places < MS_MOST && number < MS_MOST; at++, places *= 10)
            number = 10 * number + (*at - '0');
    if (!unit_of(at, &of_unit) || number * of_unit % places != 0 || number * of_unit / places >= MS_MOST)
        return false;
    *ms = number * of_unit / places;
    *unit = *at != 0;
    return true;
}
