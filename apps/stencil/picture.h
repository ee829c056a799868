/* The field as a picture: of three dimensions the layer in the middle of the third. */
#ifndef APPS_STENCIL_PICTURE_H
#define APPS_STENCIL_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

/* values: rows * columns, from 0 (cold) to 1. False: the file cannot be written; errno says why. */
bool picture_png(const char *path, const double *values, int rows, int columns);
/* In the terminal's colours, at most so many columns and half as many lines. */
void picture_show(FILE *out, const double *values, int rows, int columns, int width);
#endif
