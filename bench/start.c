/* start: joins the job and leaves it. */
#include <keel/keel.h>

int main(void)
{
    return keel_init() == KEEL_OK && keel_finalize() == KEEL_OK ? 0 : 1;
}
