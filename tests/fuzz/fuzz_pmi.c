/* What a rank's MPI library says to its agent: two ranks of a node of two, and what the root is told. */
#include "pm/pmi/pmi.h"
#include "pm/pmi/pmi_root.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pmi_server *s = pmi_create(4, 2, "kvs_fuzz", "(vector,(0,2,2))");
    struct pmi_client *client[2] = {pmi_client_create(s, 0), pmi_client_create(s, 1)};
    struct pmi_root *root = pmi_root_create(2);
    struct bytes out = {0};
    long long round = 0;
    while (size > 0) { /* lines go to one rank or the other, by their first byte */
        const uint8_t *newline = memchr(data, '\n', size);
        size_t len = newline ? (size_t)(newline - data) + 1 : size;
        int code = 0, who = data[0] & 1;
        const char *why = NULL;
        if (pmi_client_feed(client[who], data, len, &out, &code, &why) & PMI_FENCE) {
            pmi_root_report(root, 0, ++round, pmi_own_pairs(s));
            pmi_root_report(root, 1, round, pmi_own_pairs(s));
            json_t *all = pmi_root_pairs(root);
            pmi_release(s, all);
            json_decref(all);
            pmi_client_release(client[0]);
            pmi_client_release(client[1]);
        }
        data += len;
        size -= len;
    }
    pmi_client_gone(client[0]);
    pmi_client_destroy(client[0]);
    pmi_client_destroy(client[1]);
    pmi_root_destroy(root);
    pmi_destroy(s);
    bytes_free(&out);
    return 0;
}
