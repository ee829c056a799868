#include "pm/wire/quit.h"

#include "runtime/base/refusal.h"
#include "runtime/base/shown.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pm_quit(int code, const char *fmt, ...)
{
    va_list ap;
    char *text, *line = NULL;
    size_t size = 0;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text) {
        size = SHOWN_A_BYTE * strlen(text) + 1;
        line = malloc(size);
    }
    fprintf(stderr, "%s: %s\n", program_invocation_short_name,
            line ? shown_text(text, line, size) : "there is no memory to say why it ends");
    free(line);
    free(text);
    exit(code);
}

void pm_cannot_run(const char *program, int error, char *out, size_t size)
{
    static const char *const packages[][2] = {
        {"ip", "iproute2"}, {"mpiexec.hydra", "mpich"}, {"ssh", "openssh-client"}};
    for (size_t i = 0; error == ENOENT && i < sizeof packages / sizeof packages[0]; i++)
        if (strcmp(program, packages[i][0]) == 0) {
            snprintf(out, size, "cannot run %s: it is not in the PATH (Debian has it in the package %s)", program,
                     packages[i][1]);
            return;
        }
    char why[REFUSAL_MAX];
    snprintf(out, size, "cannot run %s: %s", program, refusal_error(error, why));
}
