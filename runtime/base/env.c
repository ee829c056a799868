#include "runtime/base/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

bool env_is_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "/vgpreload_");
}

uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (!text)
        return otherwise;
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (isdigit((unsigned char)*text) && !*end && value <= UINT32_MAX)
        return value;
    log_warn("%s='%s' is not a number; using %llu", name, text, (unsigned long long)otherwise);
    return otherwise;
}
