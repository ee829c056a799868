/* The grid bed: who follows the commands' routes from node to node arrives, by the shortest way and over links that
 * exist. */
#include "pm/bed/grid.h"

#include "pm/bed/bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 };

struct fixture {
    struct bed_grid bed;
    int node_at[MOST];
    int32_t at[MOST];
    int32_t wire[MOST][12]; /* [node][dim, dir] who is at the other end; -1: nobody */
};

static int link_index(char dim, const char *dir)
{
    return (int)(strchr("xyzuvw", dim) - "xyzuvw") * 2 + (strcmp(dir, "up") == 0 ? GRID_UP : GRID_DOWN);
}

/* Nodes have the places in a shuffled order: times 5 is a permutation of what 5 does not divide. */
static void setup(struct fixture *f, const char *grid, int64_t kbit)
{
    memset(f, 0, sizeof *f);
    memset(f->wire, -1, sizeof f->wire);
    assert_null(grid_parse(&f->bed.grid, grid));
    f->bed.node_at = f->node_at;
    f->bed.at = f->at;
    f->bed.kbit = kbit;
    for (int32_t place = 0; place < f->bed.grid.nodes; place++) {
        f->node_at[place] = (place * 5 + 1) % f->bed.grid.nodes;
        f->at[f->node_at[place]] = place;
    }
}

static void join_links(struct fixture *f)
{
    struct bytes text = {0};
    bed_grid_links(&text, &f->bed, (uint64_t)0xabcd1234 << 32);
    bytes_append(&text, "", 1);
    for (char *save, *line = strtok_r((char *)text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char d, e;
        int a, b;
        assert_int_equal(sscanf(line,
                                "link add %c-up netns keel-abcd1234-n%d type veth peer name %c-down netns "
                                "keel-abcd1234-n%d",
                                &d, &a, &e, &b),
                         4);
        assert_int_equal(d, e);
        int up = link_index(d, "up"), down = link_index(d, "down");
        assert_true(f->wire[a][up] == -1 && f->wire[b][down] == -1); /* each once */
        f->wire[a][up] = b;
        f->wire[b][down] = a;
    }
    bytes_free(&text);
}

/* via[to]: the neighbour; checks that it is one. */
static void routes_of(const struct fixture *f, int node, int via[])
{
    struct bytes text = {0};
    char own[32], target[32], next[32], dir[8], source[32], d;
    bed_grid_node(&text, &f->bed, node);
    bytes_append(&text, "", 1);
    bed_netns_address(node, own, sizeof own);
    for (char *save, *line = strtok_r((char *)text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "route add %31[0-9.]/32 via %31s dev %c-%7s onlink src %31s", target, next, &d, dir, source) !=
            5)
            continue;
        int to = bed_netns_node(target);
        assert_string_equal(source, own);
        via[to] = bed_netns_node(next);
        assert_int_equal(f->wire[node][link_index(d, dir)], via[to]);
    }
    bytes_free(&text);
}

static void all_arrive(const char *grid)
{
    struct fixture f;
    static int via[MOST][MOST];
    setup(&f, grid, 0);
    join_links(&f);
    int n = f.bed.grid.nodes;
    for (int node = 0; node < n; node++)
        routes_of(&f, node, via[node]);
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            int hops = 0;
            for (int at = from; at != to; at = via[at][to])
                assert_true(++hops <= n);
            assert_int_equal(hops, grid_distance(&f.bed.grid, f.at[from], f.at[to]));
        }
}

static void test_bed_grid_routes_arrive_by_the_shortest_way(void **state)
{
    (void)state;
    static const char *const grids[] = {"4x4", "4tx3t", "2x2", "2tx2t", "7", "3tx2x3", "1x6", "6t", "2x2x2x2"};
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++)
        all_arrive(grids[i]);
}

static int lines(const struct bytes *b)
{
    int n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

static void test_bed_grid_each_link_that_leaves_a_node_has_its_rate(void **state)
{
    (void)state;
    struct fixture f;
    struct bytes none = {0}, corner = {0}, middle = {0};
    setup(&f, "3x3", 0);
    bed_grid_rates(&none, &f.bed, 0);
    assert_int_equal(none.len, 0);
    f.bed.kbit = 20000;
    bed_grid_rates(&corner, &f.bed, f.node_at[0]);
    bed_grid_rates(&middle, &f.bed, f.node_at[4]);
    assert_int_equal(lines(&corner), 2);
    assert_int_equal(lines(&middle), 4);
    bytes_append(&corner, "", 1);
    assert_non_null(strstr((char *)corner.data, "dev x-up root tbf rate 20000kbit burst 25000 "));
    bytes_free(&corner);
    bytes_free(&middle);
}

static void test_bed_grid_heal_takes_back_what_cut_did(void **state)
{
    (void)state;
    struct bytes cut = {0}, heal = {0};
    bed_grid_cut(&cut, 3, false);
    bed_grid_cut(&heal, 3, true);
    assert_int_equal(cut.len, heal.len);
    for (size_t i = 0; i < cut.len; i++)
        if (cut.data[i] != heal.data[i]) { /* "add" against "del" */
            assert_memory_equal(cut.data + i, "add", 3);
            assert_memory_equal(heal.data + i, "del", 3);
            i += 2;
        }
    bytes_free(&cut);
    bytes_free(&heal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bed_grid_routes_arrive_by_the_shortest_way),
        cmocka_unit_test(test_bed_grid_each_link_that_leaves_a_node_has_its_rate),
        cmocka_unit_test(test_bed_grid_heal_takes_back_what_cut_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
