/* plan_layout.c - the layouts of styles in a cluster file
 *
 * How long a mesh dimension is and how many dimensions a tensor has is known
 * only when a program runs; what is checked here is the word.  S(9) can be no
 * dimension of any tensor, and P(some) is no reduction.
 */
#include "cluster/plan_layout.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read a whole number of at most 18 digits.  False: there is none. */
static bool number_read(const char **atp, bool minus, int64_t *valuep)
{
    const char *p = *atp + (minus && **atp == '-');
    size_t n = strspn(p, "0123456789");

    if (n == 0 || n > 18)
        return false;
    *valuep = strtoll(*atp, NULL, 10);
    *atp = p + n;
    return true;
}

static bool dim_read(const char **atp)
{
    int64_t dim;

    return number_read(atp, true, &dim) && dim >= -DTENSOR_MAX_DIMS &&
           dim < DTENSOR_MAX_DIMS;
}

/* "0)" or "0:3,5,2)": a dimension, and maybe the length for each rank. */
static bool shard_ok(const char *at)
{
    int64_t length;
    bool good = dim_read(&at);

    if (good && *at == ':')
        do {
            at++;
            good = number_read(&at, false, &length);
        } while (good && *at == ',');
    return good && strcmp(at, ")") == 0;
}

/* "0,64)": a dimension, and a factor or block of 1 or more. */
static bool block_ok(const char *at)
{
    int64_t block;

    return dim_read(&at) && *at++ == ',' && number_read(&at, false, &block) &&
           block >= 1 && strcmp(at, ")") == 0;
}

/* "max)": a reduction. */
static bool term_ok(const char *at)
{
    enum dtensor_redop op;
    size_t n = strcspn(at, ")");
    char name[24];

    if (strcmp(at + n, ")") != 0 || n >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    return dtensor_redop_parse(name, &op, NULL) == 0;
}

bool dtn_plan_layout_ok(const char *text, char why[DTN_WHY_SIZE])
{
    if (strcmp(text, "R") == 0 || strcmp(text, "P") == 0 ||
        (strncmp(text, "S(", 2) == 0 && shard_ok(text + 2)) ||
        (strncmp(text, "SS(", 3) == 0 && block_ok(text + 3)) ||
        (strncmp(text, "C(", 2) == 0 && block_ok(text + 2)) ||
        (strncmp(text, "HT(", 3) == 0 && !strchr(text, ':') &&
         shard_ok(text + 3)) ||
        (strncmp(text, "P(", 2) == 0 && term_ok(text + 2)))
        return true;
    snprintf(why, DTN_WHY_SIZE, "no layout \"%.40s\"; expected R, S(dim), "
             "SS(dim,factor), C(dim,block), HT(dim), P or P(reduction), with "
             "dim from %d to %d", text, -DTENSOR_MAX_DIMS,
             DTENSOR_MAX_DIMS - 1);
    return false;
}
