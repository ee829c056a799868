/* ARMCI's messages and collectives: all in armci.h. */
#include <armci.h>
