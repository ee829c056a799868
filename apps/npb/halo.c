/* Planes go into one of two buffers in turn. A neighbour that is put to at step k+2 has put to us at step k+1, which
 * is after it has copied what came at step k: nobody's buffer is overwritten before it was read, and nobody has to say
 * so. */
#include "apps/npb/halo.h"

#include <string.h>

enum { FROM_BELOW, FROM_ABOVE, LANES, SLOTS = 2 };

void halo_open(struct npb *npb, size_t room, struct halo *out)
{
    *out = (struct halo){
        .below = (npb->rank + npb->size - 1) % npb->size, .above = (npb->rank + 1) % npb->size, .room = room};
    window_open(npb, LANES, LANES * SLOTS * room, &out->window);
}

void halo_close(struct halo *halo)
{
    window_close(&halo->window);
}

static size_t place(const struct halo *halo, int lane)
{
    return (size_t)(lane * SLOTS + (int)(halo->step % SLOTS)) * halo->room;
}

static void receive(struct halo *halo, int lane, int from, double *out, size_t bytes)
{
    window_wait(&halo->window, lane, from);
    memcpy(out, (const char *)halo->window.received + place(halo, lane), bytes);
}

void halo_exchange(struct halo *halo, const double *lowest, const double *highest, double *below, double *above,
                   size_t bytes)
{
    window_put(&halo->window, halo->below, FROM_ABOVE, place(halo, FROM_ABOVE), lowest, bytes);
    window_put(&halo->window, halo->above, FROM_BELOW, place(halo, FROM_BELOW), highest, bytes);
    receive(halo, FROM_BELOW, halo->below, below, bytes);
    receive(halo, FROM_ABOVE, halo->above, above, bytes);
    halo->step++;
}
