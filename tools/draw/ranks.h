/* ranks.h - lists of ranks in short: "0-3,8" */
#ifndef DRAW_RANKS_H
#define DRAW_RANKS_H

#include <stddef.h>

/* In the given order; cut to buf[size] with "..." at the end.  Returns buf. */
char *draw_ranks(const int ranks[], int n, char *buf, size_t size);

#endif
