/* Lists of hosts from files and variables that others have written: whatever is accepted may stand in a command
 * line, and has room for ranks. */
#include "pm/run/hosts.h"
#include "pm/wire/layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check(struct host_list *h, bool good, const char *why)
{
    static int rank_node[100];
    expect(good || why[0]);
    expect(h->count <= LIMIT_NODES && (!good || h->count > 0));
    for (int i = 0; i < h->count; i++) {
        const char *name = h->names[i];
        expect(name[0] != '-' && name[0] &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:%") == strlen(name));
        expect(host_address(name)[0] && host_address(name)[0] != '-');
        expect(h->slots[i] >= 1 && h->slots[i] <= HOSTS_SLOTS_MAX && h->most[i] >= 0);
    }
    if (good) {
        int nodes = hosts_layout(h, h->count, 100, rank_node), before = 0;
        for (int r = 0; r < 100 && nodes; r++) {
            expect(rank_node[r] >= before && rank_node[r] <= before + 1 && rank_node[r] < nodes);
            before = rank_node[r];
        }
        hosts_drop(h, h->count / 2, h->count - h->count / 4);
    }
    hosts_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct host_list h = {0};
    char why[64] = "", *text = calloc(size + 1, 1);
    if (!text)
        return 0;
    if (size > 1)
        memcpy(text, data + 1, size - 1); /* up to its first zero */
    char *tasks = strchr(text, ' ');
    switch (size ? data[0] % 5 : 0) {
    case 0:
        check(&h, hosts_parse_list(&h, text, why, sizeof why), why);
        break;
    case 1:
        check(&h, hosts_parse_file(&h, text, why, sizeof why), why);
        break;
    case 2:
        check(&h, hosts_parse_words(&h, text, why, sizeof why), why);
        break;
    case 3:
        check(&h, hosts_parse_sge(&h, text, why, sizeof why), why);
        break;
    default:
        if (tasks)
            *tasks++ = '\0';
        check(&h, hosts_parse_slurm(&h, text, tasks, why, sizeof why), why);
    }
    free(text);
    return 0;
}
