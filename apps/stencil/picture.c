#include "apps/stencil/picture.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

/* From black over red and yellow to white. */
static void colour(double value, png_byte out[3])
{
    double v = 3.0 * (value < 0.0 ? 0.0 : value > 1.0 ? 1.0 : sqrt(value));
    for (int i = 0; i < 3; i++, v -= 1.0)
        out[i] = (png_byte)lround(255.0 * (v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v));
}

bool picture_png(const char *path, const double *values, int rows, int columns)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)columns,
                       .height = (png_uint_32)rows,
                       .format = PNG_FORMAT_RGB};
    size_t n = (size_t)rows * (size_t)columns;
    png_byte *pixels = malloc(3 * n);
    if (!pixels)
        return false;
    for (size_t i = 0; i < n; i++)
        colour(values[i], pixels + 3 * i);
    FILE *file = fopen(path, "wb"); /* png_image_write_to_file removes what it cannot write, a device as well */
    bool written = file && png_image_write_to_stdio(&image, file, 0, pixels, 0, NULL);
    written = file && fclose(file) == 0 && written;
    png_image_free(&image);
    free(pixels);
    return written;
}

void picture_show(FILE *out, const double *values, int rows, int columns, int width)
{
    int across = columns < width ? columns : width;
    int down = (int)lround((double)rows * across / columns) / 2;
    down = down > 0 ? down : 1;
    for (int i = 0; i < down; i++) {
        for (int j = 0; j < across; j++) {
            png_byte c[2][3];
            for (int half = 0; half < 2; half++) {
                int row = (int)((int64_t)(2 * i + half) * rows / (2 * down)),
                    column = (int)((int64_t)j * columns / across);
                colour(values[(size_t)row * (size_t)columns + (size_t)column], c[half]);
            }
            fprintf(out, "\033[38;2;%d;%d;%dm\033[48;2;%d;%d;%dm\u2580", c[0][0], c[0][1], c[0][2], c[1][0], c[1][1],
                    c[1][2]);
        }
        fprintf(out, "\033[0m\n");
    }
}
