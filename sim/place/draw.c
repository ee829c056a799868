/* A plane of the grid in characters: two columns of text per node, so that links fit between them.
 *
 *   .  slot on its first node   o  slot that has moved   S  free node   X  dead node
 * A link with more than one message shows how many (9 stands for nine and more), the larger of its two directions. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/number.h"
#include "sim/place/options.h"

void draw_plane_parse(const struct options *o, const char *text, int at[GRID_MAX_DIMS])
{
    const struct grid *g = &o->setup.grid;
    memset(at, 0, GRID_MAX_DIMS * sizeof *at);
    for (const char *t = text; t && *t;) {
        static const char letters[] = "xyzuvw";
        const char *l = strchr(letters, *t);
        int dim = l ? (int)(l - letters) : *t - '0', v = 0, used = 0;
        if (!number_none_is_odd(t) || sscanf(t + 1, "=%9d%n", &v, &used) != 1 || dim < 2 || dim >= g->ndims || v < 0 ||
            v >= g->size[dim])
            cli_die("--plane is written like z=3, with dimensions and coordinates of the grid, not '%s'", text);
        at[dim] = v;
        t += 1 + used;
        t += *t == ',';
    }
}

static char node_char(const struct job *j, int32_t node)
{
    int32_t r = j->place.slot_at[node];
    return (char)(r == PLACE_DEAD ? 'X' : r == PLACE_FREE ? 'S' : j->place.home[r] == node ? '.' : 'o');
}

static char link_char(const struct job *j, int32_t node, int dim)
{
    const struct grid *g = &j->place.grid;
    int32_t to = grid_neighbor(g, node, dim, GRID_UP), most = 0;
    if (to < 0 || j->load.net.tree.nodes)
        return ' ';
    for (int32_t ph = 0; ph < j->pattern.phases; ph++) {
        int32_t up = j->load.phase[ph].count[grid_link(g, node, dim, GRID_UP)];
        int32_t down = j->load.phase[ph].count[grid_link(g, to, dim, GRID_DOWN)];
        most = up > most ? up : most;
        most = down > most ? down : most;
    }
    return (char)(most < 2 ? ' ' : most > 9 ? '9' : '0' + most);
}

void draw_plane(FILE *f, const struct job *j, const int at[GRID_MAX_DIMS])
{
    const struct grid *g = &j->place.grid;
    int c[GRID_MAX_DIMS];
    memcpy(c, at, sizeof c);
    int height = g->ndims > 1 ? g->size[1] : 1;
    for (int d = 2; d < g->ndims; d++)
        fprintf(f, "%s%c=%d", d > 2 ? "," : "plane ", "xyzuvw"[d], at[d]);
    if (g->ndims > 2)
        fputc('\n', f);
    for (int y = 0; y < height; y++) {
        for (int pass = 0; pass < 2; pass++) {
            char line[2 * INT16_MAX + 4];
            int n = 0;
            for (int x = 0; x < g->size[0]; x++) {
                c[0] = x;
                if (g->ndims > 1)
                    c[1] = y;
                int32_t node = grid_node(g, c);
                line[n++] = (char)(pass == 0 ? node_char(j, node) : g->ndims > 1 ? link_char(j, node, 1) : ' ');
                line[n++] = (char)(pass == 0 ? link_char(j, node, 0) : ' ');
            }
            while (n > 0 && line[n - 1] == ' ')
                n--;
            line[n] = '\0';
            if (pass == 0 || n)
                fprintf(f, "  %s\n", line);
        }
    }
    fputs(". slot at home  o slot moved  S free  X dead  2..9 messages on a link (9: or more)\n", f);
}
