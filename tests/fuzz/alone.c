/* Runs a fuzz target without libFuzzer: on the files named, or on a number of inputs that are made up from a seed. */
#include "runtime/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3000, INPUT_MAX = 600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "re");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"cmd=init pmi_version=1\n",
                                        "cmd=barrier_in\n",
                                        "cmd=put key=a value=b\n",
                                        "KEEL-PM3",
                                        "{\"a\":",
                                        "[0,1,2,3]}",
                                        "\"YQBi\"}",
                                        "\n"};
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_file(argv[i]);
    const char *seed = getenv("KEEL_TEST_SEED");
    struct rng r;
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)first);
    rng_seed(&r, first);
    for (int i = 0; argc < 2 && i < INPUTS; i++) {
        uint8_t data[INPUT_MAX];
        size_t size = rng_below(&r, sizeof data), at = 0;
        while (at < size) {
            const char *word = words[rng_below(&r, sizeof words / sizeof words[0])];
            size_t n = strlen(word);
            if (n <= size - at && rng_below(&r, 4) == 0) {
                for (size_t k = 0; k < n; k++)
                    data[at++] = (uint8_t)word[k];
            } else {
                data[at++] = (uint8_t)(rng_below(&r, 2) ? rng_u64(&r) : rng_below(&r, 4));
            }
        }
        LLVMFuzzerTestOneInput(data, size);
    }
    return failed;
}
