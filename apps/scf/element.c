#include "apps/scf/element.h"

#include <stddef.h>
#include <strings.h>

static const char *const symbols[ELEMENT_MAX + 1] = {
    "",  "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si", "P",  "S",  "Cl", "Ar",
    "K", "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr"};

int element_number(const char *symbol)
{
    for (int z = 1; z <= ELEMENT_MAX; z++)
        if (strcasecmp(symbol, symbols[z]) == 0)
            return z;
    return 0;
}

const char *element_symbol(int number)
{
    return symbols[number];
}

void element_occupation(int number, int electrons[3])
{
    static const int order[] = {0, 0, 1, 0, 1, 0, 2, 1}; /* 1s 2s 2p 3s 3p 4s 3d 4p */
    electrons[0] = electrons[1] = electrons[2] = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0] && number > 0; i++) {
        int room = 2 * (2 * order[i] + 1);
        int put = number < room ? number : room;
        electrons[order[i]] += put;
        number -= put;
    }
}
