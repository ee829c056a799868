#include "pm/wire/ticket.h"

#include "pm/wire/bytes.h"
#include "pm/wire/message.h"
#include "pm/wire/session.h"

#include <sodium.h>
#include <stdio.h>

char *ticket_variable(uint64_t job_id, const uint8_t *ticket, const char *host, int port, int node, const char *from)
{
    char hex[2 * SESSION_SECRET + 1];
    sodium_bin2hex(hex, sizeof hex, ticket, SESSION_SECRET);
    char *text =
        pm_printf(LAUNCH_ENV "=%016llx,%s,%s,%d,%d,%s", (unsigned long long)job_id, hex, host, port, node, from);
    sodium_memzero(hex, sizeof hex);
    return text;
}

bool ticket_is_with(pid_t pid)
{
    static const char name[] = LAUNCH_ENV "=";
    char path[64], buffer[4096];
    size_t matched = 0, n;
    bool begins = true, found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && (n = fread(buffer, 1, sizeof buffer, f)) > 0)
        for (size_t i = 0; i < n && !found; i++) {
            matched = begins && buffer[i] == name[matched] ? matched + 1 : 0;
            begins = matched > 0 || buffer[i] == '\0';
            found = matched == sizeof name - 1;
        }
    if (f)
        fclose(f);
    return found;
}
