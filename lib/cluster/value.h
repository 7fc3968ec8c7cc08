/* value.h - scalar values: numbers, sizes, times, words, names */
#ifndef DTN_CLUSTER_VALUE_H
#define DTN_CLUSTER_VALUE_H

#include "cluster/file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dtn_key;

/* Read a scalar into the struct at `base`.  False: `why` gets the reason,
 * `"four" is not a whole number; expected 1 to 1024`.
 */
bool dtn_value_parse(const struct dtn_key *key, const char *text, void *base,
                     char why[DTN_WHY_SIZE]);

/* Write the scalar in its shortest form, "512K" or "10s".  A number that was
 * not given is "default".
 */
void dtn_value_print(const struct dtn_key *key, const void *base, FILE *stream);

/* An exact size or time: 524288 is "512K", 60000000000 is "1min". */
char *dtn_exact_size(uint64_t bytes, char *buf, size_t size);
char *dtn_exact_time(int64_t ns, char *buf, size_t size);

/* A letter, then at most 31 letters, digits, "-" or "_". */
bool dtn_name_ok(const char *name);
#define DTN_NAME_GRAMMAR \
    "a letter, then at most 31 letters, digits, \"-\" or \"_\""

#endif
