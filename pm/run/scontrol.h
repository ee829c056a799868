/* What Slurm's scontrol prints. */
#ifndef KEEL_PM_SCONTROL_H
#define KEEL_PM_SCONTROL_H

/* scontrol show WHAT: both of its outputs, for free(), at most 16 MiB. Blocks until it has ended, ten seconds at most,
 * and kills it then. It may not be there: the text says so. */
char *scontrol_show(const char *what);
#endif
