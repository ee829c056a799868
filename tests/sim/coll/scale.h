/* Large groups: steps, messages and bytes against the number of members and the share of dead ones. */
#ifndef KEEL_TESTS_SIM_COLL_SCALE_H
#define KEEL_TESTS_SIM_COLL_SCALE_H
void coll_scale(void);
#endif
