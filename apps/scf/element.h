/* The elements H to Kr: symbols and ground-state shell occupations. */
#ifndef KEEL_SCF_ELEMENT_H
#define KEEL_SCF_ELEMENT_H

enum { ELEMENT_MAX = 36 };

/* Atomic number of a symbol in any case ("c", "NE"), 0 if there is none among H to Kr. */
int element_number(const char *symbol);
/* Symbol of an atomic number 1..ELEMENT_MAX; static storage. */
const char *element_symbol(int number);
/* Electrons in s, p and d shells of the neutral atom, filled in the order 1s 2s 2p 3s 3p 4s 3d 4p. */
void element_occupation(int number, int electrons[3]);

#endif
