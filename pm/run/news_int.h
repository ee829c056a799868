/* Between news.c, what becomes of ranks and nodes, and news_sets.c, what becomes of sets and of replicas. */
#ifndef KEEL_PM_RUN_NEWS_INT_H
#define KEEL_PM_RUN_NEWS_INT_H

#include "pm/run/news.h"

enum { NEWS_LINE = 512 };

struct news_line {
    char text[NEWS_LINE];
    size_t len;
};

/* What does not fit is cut off. */
void news_add(struct news_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
