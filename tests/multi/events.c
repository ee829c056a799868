/* events: each of keel_event's limits, for events.py, which reads the log: names and texts in hexadecimal, one event
 * for each pair of arguments; "-": no text. */
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static char *bytes_of(const char *hex)
{
    size_t n = strlen(hex) / 2;
    char *bytes = malloc(n + 1);
    EXPECT(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)strtol((char[]){hex[2 * i], hex[2 * i + 1], 0}, NULL, 16);
    bytes[n] = '\0';
    return bytes;
}

int main(int argc, char **argv)
{
    EXPECT_STATUS(keel_event("early", 0, NULL), KEEL_ERR_STATE);
    CHECK(keel_init());
    for (int i = 1; i + 1 < argc; i += 2) {
        char *name = bytes_of(argv[i]), *text = argv[i + 1][0] == '-' ? NULL : bytes_of(argv[i + 1]);
        bool fits = *name && strlen(name) <= 64;
        EXPECT_STATUS(keel_event(name, i, text), fits ? KEEL_OK : KEEL_ERR_ARG);
        free(name);
        free(text);
    }
    EXPECT_STATUS(keel_event(NULL, 0, NULL), KEEL_ERR_ARG);
    CHECK(keel_finalize());
    EXPECT_STATUS(keel_event("late", 0, NULL), KEEL_ERR_STATE);
    return 0;
}
