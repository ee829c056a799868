#include "pm/run/option_row.h"

#include "pm/run/duration.h"
#include "pm/wire/quit.h"
#include "runtime/base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number_of(const char *name, const char *text, int low, int high)
{
    int64_t value;
    if (!number_whole(text, low, high, &value))
        pm_quit(2, "%s: %s is not a number from %d to %d", name, text, low, high);
    return (int)value;
}

int option_choice(const char *name, const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    pm_quit(2, "%s: %s is not known", name, text);
}

static const char *shown(int ms, char *out, size_t size)
{
    snprintf(out, size, ms % 1000 ? "%dms" : "%ds", ms % 1000 ? ms : ms / 1000);
    return out;
}

int option_time(const struct option_row *row, const char *text)
{
    bool unit;
    int64_t ms;
    char low[16], high[16];
    if (row->never && strcmp(text, row->never) == 0)
        return 0;
    if (duration_parse(text, &ms, &unit) && ms >= row->low && ms <= row->high)
        return (int)ms;
    shown(row->low, low, sizeof low);
    shown(row->high, high, sizeof high);
    if (row->never)
        pm_quit(2, "--%s: %s is neither a time from %s to %s nor %s", row->name, text, low, high, row->never);
    pm_quit(2, "--%s: %s is not a time from %s to %s, as 0.5s or 500ms is", row->name, text, low, high);
}

void option_take(const struct option_row *row, void *into, const char *text)
{
    char *at = (char *)into + row->at, name[64];
    if (row->letter)
        snprintf(name, sizeof name, "-%c", row->letter);
    else
        snprintf(name, sizeof name, "--%s", row->name);
    if (row->given)
        *(bool *)((char *)into + row->given) = true;
    switch (row->kind) {
    case TAKES_NOTHING:
        *(bool *)at = true;
        break;
    case TAKES_NUMBER:
        *(int *)at = number_of(name, text, row->low, row->high);
        break;
    case TAKES_TIME:
        *(int *)at = option_time(row, text);
        break;
    case TAKES_CHOICE:
        *(int *)at = option_choice(name, text, row->words);
        break;
    case TAKES_TEXT:
        *(const char **)at = text;
        break;
    case TAKES_CALL:
        row->call(into, text);
        break;
    case IS_ALIAS:
        break;
    }
}
