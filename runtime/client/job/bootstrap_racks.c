/* What the environment of a process tells of its host's rack. */
#include "runtime/client/job/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 16 << 20 };

static char *read_file(const char *path, char *why, size_t size)
{
    FILE *f = fopen(path, "re");
    char *text = f ? calloc(1, FILE_MOST + 1) : NULL; /* pages that are not touched cost nothing */
    size_t n = text ? fread(text, 1, FILE_MOST, f) : 0;
    if (!text || ferror(f) || n == FILE_MOST) {
        snprintf(why, size, "cannot read %s: %s", path, n == FILE_MOST ? "too long" : strerror(errno));
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

void bootstrap_racks(const char *host, struct rack_names *out, char *why, size_t size)
{
    const char *path = getenv("KEEL_TOPOLOGY_FILE"), *expression = getenv("KEEL_RACK_OF");
    char found[128] = "";
    *out = (struct rack_names){0};
    *why = '\0';
    if (path && *path && expression && *expression) {
        snprintf(why, size, "KEEL_TOPOLOGY_FILE and KEEL_RACK_OF cannot be used together");
    } else if (path && *path) {
        char *text = read_file(path, found, sizeof found);
        if (text)
            (void)racks_find(text, host, out, found, sizeof found);
        free(text);
        if (found[0])
            snprintf(why, size, "KEEL_TOPOLOGY_FILE: %s", found);
    } else if (expression && *expression && !racks_match(expression, host, out, found, sizeof found)) {
        snprintf(why, size, "KEEL_RACK_OF: %s", found);
    }
}

bool bootstrap_copies_at(struct copy_rule *rule, char *why, size_t size)
{
    const char *said = getenv("KEEL_COPIES_AT");
    bool next = said && strcmp(said, "next") == 0;
    rule->at = next ? COPIES_AT_NEXT : COPIES_AT_HALF;
    if (!said || !*said || next || strcmp(said, "half") == 0)
        return true;
    snprintf(why, size, "KEEL_COPIES_AT=%s is not half or next", said);
    return false;
}
