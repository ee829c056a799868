/* What scontrol prints: whatever is accepted gives each host a place of its own on the grid. */
#include "pm/run/topology.h"
#include "pm/wire/layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"n1", "n2", "n3", "n10", "x000"};
    enum { HOSTS = sizeof names / sizeof names[0] };
    const struct topology_hosts hosts = {names, size ? data[0] % (HOSTS + 1) : 0};
    int sides[2] = {0}, place_of[HOSTS];
    char why[64] = "", *text = calloc(size + 1, 1);
    if (!text)
        return 0;
    if (size > 1)
        memcpy(text, data + 1, size - 1); /* up to its first zero */
    enum topology_result result = topology_of_switches(&hosts, text, sides, place_of, why, sizeof why);
    expect(result != TOPOLOGY_BAD || why[0]);
    for (int i = 0; i < hosts.count && result == TOPOLOGY_FOUND; i++) {
        expect((long long)sides[0] * sides[1] <= LIMIT_NODES && place_of[i] >= 0 && place_of[i] < sides[0] * sides[1]);
        for (int k = 0; k < i; k++)
            expect(place_of[k] != place_of[i]);
    }
    free(text);
    return 0;
}
