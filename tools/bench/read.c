/* read.c - numbers and words of the command line
 *
 * "4M" is 4194304 as a size; "2s" is 2000000000 as a time; "half" is f16, as
 * nccl-tests calls it.
 */
#include "tools/bench/read.h"
#include "tools/bench/aliases.h"
#include "dtensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool read_digits(const char *text, int64_t *valuep,
                          const char **restp)
{
    char *rest;
    long long value;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    value = strtoll(text, &rest, 10);
    if (errno || value > READ_BIG)
        return false;
    *valuep = value;
    *restp = rest;
    return true;
}

struct read_unit_name {
    const char *name;
    int64_t factor;
};
static const struct read_unit_name read_none[] = { { "", 1 }, { NULL, 0 } };
static const struct read_unit_name read_sizes[] = {
    { "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 },
    { NULL, 0 }
};
static const struct read_unit_name read_percents[] = {
    { "%", 1 }, { "", 1 }, { NULL, 0 }
};
static const struct read_unit_name read_times[] = {
    { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
    { "min", INT64_C(60000000000) }, { NULL, 0 }
};

static const struct read_unit_name *const read_units[] = {
    [READ_COUNT] = read_none, [READ_SIZE] = read_sizes,
    [READ_TIME] = read_times, [READ_PERCENT] = read_percents
};

bool read_number(const char *text, enum read_unit unit, int64_t *valuep)
{
    const struct read_unit_name *units = read_units[unit];
    const char *rest;
    int64_t value;

    if (!read_digits(text, &value, &rest))
        return false;
    while (units->name && strcmp(units->name, rest) != 0)
        units++;
    if (!units->name || value > READ_BIG / units->factor)
        return false;
    *valuep = value * units->factor;
    return true;
}

bool read_dtype(const char *text, int64_t *valuep, struct dtensor_error *err)
{
    enum dtensor_dtype dtype = DTENSOR_NDTYPES;

    if (strcmp(text, "all") != 0 &&
        dtensor_dtype_parse(alias_dtype(text), &dtype, err) != 0)
        return false;
    *valuep = dtype;
    return true;
}

bool read_redop(const char *text, int64_t *valuep, struct dtensor_error *err)
{
    enum dtensor_redop op = DTENSOR_NREDOPS;

    if (strcmp(text, "all") != 0 &&
        dtensor_redop_parse(alias_redop(text), &op, err) != 0)
        return false;
    *valuep = op;
    return true;
}

int read_shape(const char *text, int64_t shape[DTENSOR_MAX_DIMS])
{
    int ndim = 0;

    for (;; text++) {
        if (ndim == DTENSOR_MAX_DIMS ||
            !read_digits(text, &shape[ndim++], &text))
            return 0;
        if (*text != 'x')
            return *text ? 0 : ndim;
    }
}
