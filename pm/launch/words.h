/* How Hydra calls launchers, and how we do. */
#ifndef KEEL_PM_WORDS_H
#define KEEL_PM_WORDS_H

#include <stdbool.h>

enum { WORDS_MAX = 256 };

struct words {
    char *argv[WORDS_MAX];
    bool may_be_here;
    const char *why; /* it cannot be made */
};

/* Is this the call of a launcher? */
bool words_are_hydras(int argc, char *const *argv);
/* The same call with the true launcher (launcher if that is not empty), the true host, standard input that is carried,
 * and for Hydra's proxy argv[0]. Memory is not given back: they are run. */
bool words_make(struct words *w, int argc, char *const *argv, const char *launcher, const char *host);
/* As Hydra thinks of it. */
bool words_host_is_here(const char *host);
#endif
