/* How the process ends. Where a script has started it the agent hears the script's exit code only. It sees by itself
 * that this process has ended; that it ended in order it is told here (wire/note.h: ended). Without that word it has
 * died.
 */
#ifndef KEEL_CLIENT_JOB_ENDING_H
#define KEEL_CLIENT_JOB_ENDING_H

/* This process is the rank from now on: what exit calls says so. Once. */
void ending_begin(void);
/* It ends in order. */
void ending_say(int code);
#endif
