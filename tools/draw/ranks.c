/* ranks.c - lists of ranks in short: 0 1 2 3 8 is "0-3,8" */
#include "tools/draw/ranks.h"

#include <stdio.h>
#include <string.h>

char *draw_ranks(const int ranks[], int n, char *buf, size_t size)
{
    char one[32];
    size_t used = 0;
    int last;

    buf[0] = '\0';
    for (int i = 0; i < n; i = last + 1) {
        for (last = i; last + 1 < n && ranks[last + 1] == ranks[last] + 1;)
            last++;
        snprintf(one, sizeof one, last > i ? "%s%d%c%d" : "%s%d",
                 i ? "," : "", ranks[i], last == i + 1 ? ',' : '-',
                 ranks[last]);
        if (used + strlen(one) + 4 >= size) {
            strcpy(buf + used, "...");
            return buf;
        }
        used += (size_t)sprintf(buf + used, "%s", one);
    }
    return buf;
}
