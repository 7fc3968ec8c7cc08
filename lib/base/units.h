/* units.h - sizes and times as people write them; checked arithmetic */
#ifndef DTN_BASE_UNITS_H
#define DTN_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a * b and *out = a + b.  False: that overflows, and *out is unchanged.
 */
bool dtn_mul_size(size_t a, size_t b, size_t *out);
bool dtn_add_size(size_t a, size_t b, size_t *out);

/* Read a whole number of at most `max`: all of the text, in decimal, or with 0x
 * if `hex`.
 */
bool dtn_parse_u64(const char *text, bool hex, uint64_t max, uint64_t *out);

/* strtod() with a decimal point, whatever locale the program has set. */
double dtn_parse_real(const char *text, char **end);

/* "512K" is 524288: K M G T are powers of 1024. */
bool dtn_parse_size(const char *text, uint64_t *bytes);

/* "30s" is 30e9.  A unit is required: us, ms, s or min. */
bool dtn_parse_time(const char *text, int64_t *ns);

/* "512.0 KiB", "1.5 s": for messages.  Return `buf`. */
char *dtn_format_size(uint64_t bytes, char *buf, size_t size);
char *dtn_format_time(int64_t ns, char *buf, size_t size);

/* Ranks as people write them: {0,1,2,5} is "0-2,5"; cut with "..." . */
char *dtn_format_ranks(const int ranks[], int n, char *buf, size_t size);

#endif
