#include "sim/route/heat.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 10 };

/* Of a cable: the busier of its two links. */
static float cable_load(const struct fabric *f, const float *load, int32_t link)
{
    float a = load[link], b = load[f->reverse[link]];
    return a > b ? a : b;
}

/* 1: broken at some time, 2: for good. Indexed by cable. NULL when memory is out. */
static uint8_t *broken_map(const struct fabric *f, const struct outages *o)
{
    uint8_t *broken = calloc((size_t)fabric_links(f) + 1, 1);
    for (size_t i = 0; broken && i < o->n; i++)
        broken[o->list[i].cable] |= o->list[i].end_ns == OUTAGE_FOREVER ? 2 : 1;
    return broken;
}

static void put_link(FILE *out, const struct fabric *f, const float *load, const uint8_t *broken, int32_t link,
                     float most, bool color)
{
    static const char shade[] = " .:-=+*#%@";
    static const int tint[STEPS] = {236, 17, 18, 19, 25, 31, 35, 142, 208, 196};
    if (f->neighbor[link] < 0) {
        fputc(' ', out);
        return;
    }
    int step = (int)(cable_load(f, load, link) / most * STEPS);
    step = step < 0 ? 0 : step >= STEPS ? STEPS - 1 : step;
    uint8_t state = broken[fabric_cable(f, link)];
    char c = (char)(state & 2 ? 'X' : state ? 'x' : shade[step]);
    if (color)
        fprintf(out, "\033[48;5;%dm\033[38;5;%dm%c\033[0m", tint[step], state ? 15 : 250, c);
    else
        fputc(c, out);
}

static void print_map(FILE *out, const struct fabric *f, const float *load, const uint8_t *broken, float most,
                      bool color)
{
    int nx = f->grid.size[0], ny = f->grid.ndims > 1 ? f->grid.size[1] : 1;
    for (int y = 0; y < ny; y++) {
        for (int x = 0; x < nx; x++) {
            fputc('o', out);
            put_link(out, f, load, broken, (y * nx + x) * f->ports, most, color);
        }
        fputc('\n', out);
        for (int x = 0; f->ports > 2 && x < nx; x++) {
            put_link(out, f, load, broken, (y * nx + x) * f->ports + 2, most, color);
            fputc(' ', out);
        }
        if (f->ports > 2)
            fputc('\n', out);
    }
}

static void print_busiest(FILE *out, const struct fabric *f, const float *load, const uint8_t *broken)
{
    enum { LINES = 20 };
    int32_t best[LINES], n = 0;
    for (int32_t l = 0; l < fabric_links(f); l++) {
        if (f->neighbor[l] < 0 || (n == LINES && load[l] <= load[best[n - 1]]))
            continue;
        int32_t at = n < LINES ? n++ : n - 1;
        for (; at > 0 && load[best[at - 1]] < load[l]; at--)
            best[at] = best[at - 1];
        best[at] = l;
    }
    fprintf(out, "busiest links\n");
    for (int32_t i = 0; i < n; i++)
        fprintf(out, "  router %6d -> %6d  %5.1f %%%s\n", best[i] / f->ports, f->neighbor[best[i]],
                100.0 * (double)load[best[i]], broken[fabric_cable(f, best[i])] ? "  (broken for a time)" : "");
}

void heat_print(FILE *out, const struct fabric *f, const float *load, const struct outages *o, bool color)
{
    uint8_t *broken = broken_map(f, o);
    if (!broken)
        return;
    if (f->kind == FABRIC_GRID && f->grid.ndims <= 2) {
        float most = 1e-6f;
        for (int32_t l = 0; l < fabric_links(f); l++)
            most = f->neighbor[l] >= 0 && load[l] > most ? load[l] : most;
        fprintf(out,
                "link load, the busier direction, in tenths of the busiest link's %.1f %%: blank . : - = + * # %% @\n"
                "X broken for good, x for a time; last column and row: links round the torus\n",
                100 * (double)most);
        print_map(out, f, load, broken, most, color);
    } else {
        print_busiest(out, f, load, broken);
    }
    free(broken);
}

FILE *heat_script(void)
{
    int fd = memfd_create("keel-route", 0); /* gnuplot inherits it */
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !out)
        close(fd);
    return out;
}

/* In a process group of its own: a terminal's interruption is for us, and a picture begun is drawn to its end. */
static int spawn_gnuplot(char *argv[], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attr);
    if (!error) {
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attr, 0);
        error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (!error)
            error = posix_spawnp(pid, "gnuplot", &actions, &attr, argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

const char *heat_gnuplot(FILE *script)
{
    char path[32];
    char *argv[] = {(char *)"gnuplot", path, NULL};
    pid_t pid;
    int status;
    if (fflush(script) != 0)
        return "the script for gnuplot cannot be written";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(script));
    int error = spawn_gnuplot(argv, &pid);
    if (error)
        return "gnuplot cannot be started (Debian package gnuplot-nox)";
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return "gnuplot was lost";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "gnuplot cannot write the picture";
}

static void write_script(FILE *out, const char *path, const struct fabric *f)
{
    size_t len = strlen(path);
    bool svg = len > 4 && strcmp(path + len - 4, ".svg") == 0;
    fprintf(out, "set terminal %s\nset output '%s'\n", svg ? "svg size 760,700" : "pngcairo size 760,700", path);
    fprintf(out,
            "set palette defined (0 '#d8dee9', 0.3 '#5e81ac', 0.6 '#ebcb8b', 1 '#bf616a')\nset cbrange [0:*]\n"
            "set cblabel 'share of time the busier direction is in use'\nunset key\nset size ratio -1\n"
            "set xrange [-1:%d]\nset yrange [-1:%d]\nset xlabel 'x'\nset ylabel 'y'\n",
            f->grid.size[0], f->grid.size[1]);
    fprintf(out, "set title 'link load; crosses: broken for good (black), for a time (grey)'\n");
    fprintf(out, "plot $links using 1:2:($3-$1):($4-$2):5 with vectors nohead lw 3 lc palette, \\\n"
                 "  $links using ($6>1 ? ($1+$3)/2 : NaN):(($2+$4)/2) with points pt 2 ps 0.9 lw 2 lc 'black', \\\n"
                 "  $links using ($6==1 ? ($1+$3)/2 : NaN):(($2+$4)/2) with points pt 2 ps 0.9 lw 2 lc '#808080'\n");
}

const char *heat_image(const char *path, const struct fabric *f, const float *load, const struct outages *o)
{
    if (strchr(path, '\''))
        return "the name of a picture may not hold a quote";
    FILE *out = heat_script();
    uint8_t *broken = broken_map(f, o);
    const char *wrong = "the script for gnuplot cannot be written";
    if (!out || !broken)
        goto out;
    fprintf(out, "$links << EOD\n");
    for (int32_t l = 0; l < fabric_links(f); l += 2) { /* upward links: each cable once */
        if (f->neighbor[l] < 0)
            continue;
        int32_t r = l / f->ports;
        int x = (int)(r % f->grid.size[0]), y = (int)(r / f->grid.size[0]), d = l % f->ports / 2;
        fprintf(out, "%d %d %d %d %.4f %d\n", x, y, x + (d == 0), y + (d == 1), (double)cable_load(f, load, l),
                broken[fabric_cable(f, l)]);
    }
    fprintf(out, "EOD\n");
    write_script(out, path, f);
    wrong = heat_gnuplot(out);
out:
    if (out)
        fclose(out);
    free(broken);
    return wrong;
}
