/* A moment at which a program writes nothing, so that its copies can be compared from outside (keelctl verify): every
 * rank comes by rest_point(step), the first one decides for all whether they rest there, and those who do say so in the
 * event log and stay until they are told to go on. The test that runs them says what it wants by files in the folder
 * KEEL_REST:
 *   want       rest at the next step that nobody has come to; the test takes it away then
 *   last       rest at the last step
 *   end        the next step that nobody has come to is the last one, for programs that ask (rest_is_end)
 *   step.N     made by the ranks: "rest", "pass" or "end"
 *   go.N       go on from step N */
#ifndef KEEL_TEST_REST_H
#define KEEL_TEST_REST_H

#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REST_PATH = 512 };

static bool rest_has(const char *folder, const char *name)
{
    char path[REST_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* One rank's decision becomes that of all: whoever links first. */
static void rest_decide(const char *folder, const char *step, bool rest)
{
    const char *word = rest ? "rest" : rest_has(folder, "end") ? "end" : "pass";
    char mine[REST_PATH], all[REST_PATH];
    snprintf(mine, sizeof mine, "%s/of.%d", folder, getpid());
    snprintf(all, sizeof all, "%s/%s", folder, step);
    FILE *f = fopen(mine, "w");
    if (!f)
        return;
    fputs(word, f);
    fclose(f);
    (void)!link(mine, all);
    unlink(mine);
}

static int rest_decided(const char *folder, const char *step)
{
    char path[REST_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, step);
    FILE *f = fopen(path, "r");
    int first = f ? fgetc(f) : EOF;
    if (f)
        fclose(f);
    return first;
}

/* Somebody has made it the last step. */
static inline bool rest_is_end(long number)
{
    const char *folder = getenv("KEEL_REST");
    char step[32];
    snprintf(step, sizeof step, "step.%ld", number);
    return folder && rest_decided(folder, step) == 'e';
}

static void rest_point(long number, bool last)
{
    const char *folder = getenv("KEEL_REST");
    char step[32], go[32];
    if (!folder)
        return;
    snprintf(step, sizeof step, "step.%ld", number);
    snprintf(go, sizeof go, "go.%ld", number);
    if (!rest_has(folder, step))
        rest_decide(folder, step, rest_has(folder, "want") || (last && rest_has(folder, "last")));
    if (rest_decided(folder, step) != 'r' || rest_has(folder, go))
        return;
    (void)keel_event("rest", number, NULL);
    while (rest_has(folder, step) && !rest_has(folder, go))
        usleep(1000);
}
#endif
