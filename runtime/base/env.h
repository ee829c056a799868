/* What the environment says. */
#ifndef KEEL_BASE_ENV_H
#define KEEL_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

/* The decimal number in the variable; `otherwise` if it is not set or, with a warning, no number from 0 to 2^32. */
uint64_t env_number(const char *name, uint64_t otherwise);
/* This process is run by valgrind. */
bool env_is_valgrind(void);
#endif
