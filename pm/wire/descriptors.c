#include "pm/wire/descriptors.h"

void descriptors_raise(struct rlimit *before)
{
    getrlimit(RLIMIT_NOFILE, before);
    struct rlimit all = {before->rlim_max, before->rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &all); /* what is missing is told when it is known how many are needed */
}

long descriptors_missing(long needed)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur >= (rlim_t)needed)
        return 0;
    return needed - (long)now.rlim_cur;
}
