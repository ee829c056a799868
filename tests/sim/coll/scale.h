/* Large groups: steps, messages and bytes against the number of members and the share of dead ones. */
#ifndef KEEL_TESTS_SIM_COLL_SCALE_H
#define KEEL_TESTS_SIM_COLL_SCALE_H

/* Groups of 16, 64, ... up to most members. Prints one table, comma separated, and asserts what docs/collectives.md
 * promises. */
void coll_scale(int most);
#endif
