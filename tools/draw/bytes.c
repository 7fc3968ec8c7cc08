/* bytes.c - sizes and times with three digits: 1536 bytes are "1.50 KiB" */
#include "tools/draw/bytes.h"

#include <stdio.h>

static char *bytes_three(double value, const char *unit, char *buf, size_t size)
{
    snprintf(buf, size, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0,
             value, unit);
    return buf;
}

char *draw_bytes(double bytes, char *buf, size_t size)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    int unit = 0;

    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(buf, size, "%.0f B", bytes);
        return buf;
    }
    return bytes_three(bytes, units[unit], buf, size);
}

char *draw_time(double us, char *buf, size_t size)
{
    return us < 1e3 ? bytes_three(us, "us", buf, size)
         : us < 1e6 ? bytes_three(us / 1e3, "ms", buf, size)
                    : bytes_three(us / 1e6, "s", buf, size);
}
