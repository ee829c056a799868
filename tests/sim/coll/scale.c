#include "tests/sim/coll/scale.h"
void coll_scale(void)
{
}
