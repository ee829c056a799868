#include "pm/pmi/pmi_root.h"

#include "pm/wire/bytes.h"

#include <stdlib.h>

struct report {
    long long round;
    json_t *kvs;
    bool dead;
};

struct pmi_root {
    int nodes;
    struct report *reports;
};

struct pmi_root *pmi_root_create(int nodes)
{
    struct pmi_root *root = pm_alloc(sizeof *root);
    root->nodes = nodes;
    root->reports = pm_alloc((size_t)nodes * sizeof *root->reports);
    return root;
}

void pmi_root_destroy(struct pmi_root *root)
{
    if (!root)
        return;
    for (int i = 0; i < root->nodes; i++)
        json_decref(root->reports[i].kvs);
    free(root->reports);
    free(root);
}

void pmi_root_report(struct pmi_root *root, int node, long long round, const json_t *kvs)
{
    if (node < 0 || node >= root->nodes || round < root->reports[node].round || !json_is_object(kvs))
        return;
    json_decref(root->reports[node].kvs);
    root->reports[node].round = round;
    root->reports[node].kvs = json_copy((json_t *)kvs);
}

void pmi_root_set_alive(struct pmi_root *root, int node, bool alive)
{
    if (node >= 0 && node < root->nodes)
        root->reports[node].dead = !alive;
}

long long pmi_root_complete(const struct pmi_root *root)
{
    long long lowest = -1;
    for (int i = 0; i < root->nodes; i++)
        if (!root->reports[i].dead && (lowest < 0 || root->reports[i].round < lowest))
            lowest = root->reports[i].round;
    return lowest < 0 ? 0 : lowest;
}

json_t *pmi_root_pairs(const struct pmi_root *root)
{
    json_t *all = json_object();
    for (int i = 0; i < root->nodes; i++)
        if (root->reports[i].kvs)
            json_object_update_missing(all, root->reports[i].kvs);
    return all;
}
