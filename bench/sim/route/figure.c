#include "bench/sim/route/options.h"
int command_figure(struct options *o)
{
    (void)o;
    return 0;
}
