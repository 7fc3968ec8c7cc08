/* bytes.h - sizes and times with three digits */
#ifndef DRAW_BYTES_H
#define DRAW_BYTES_H

#include <stddef.h>

/* "512 B", "1.50 KiB", "64.0 MiB" */
char *draw_bytes(double bytes, char *buf, size_t size);

/* "1.25 us", "38.4 ms" */
char *draw_time(double us, char *buf, size_t size);

#endif
