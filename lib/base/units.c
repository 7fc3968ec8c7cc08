/* units.c - numbers as people write them
 *
 * 512K is 524288 bytes, 30s is 30000000000 ns, ranks 0 1 2 5 are "0-2,5".
 * Overflow is tested by a division before each operation, not after it.
 */
#include "base/units.h"
#include "base/compiler.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dtn_mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

bool dtn_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static int digit_value(char c, int base)
{
    int v = c >= '0' && c <= '9' ? c - '0'
          : c >= 'a' && c <= 'f' ? c - 'a' + 10
          : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;

    return v < base ? v : -1;
}

/* Read digits from *textp on; false when there are none or they overflow. */
static bool parse_digits(const char **textp, int base, uint64_t *out)
{
    const char *p = *textp;
    uint64_t value = 0;
    int d;

    for (; (d = digit_value(*p, base)) >= 0; p++) {
        if (value > (UINT64_MAX - (uint64_t)d) / (uint64_t)base)
            return false;
        value = value * (uint64_t)base + (uint64_t)d;
    }
    if (p == *textp)
        return false;
    *textp = p;
    *out = value;
    return true;
}

bool dtn_parse_u64(const char *text, bool hex, uint64_t max, uint64_t *out)
{
    uint64_t value;
    int base = 10;

    if (hex && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        base = 16;
    }
    if (!parse_digits(&text, base, &value) || *text || value > max)
        return false;
    *out = value;
    return true;
}

double dtn_parse_real(const char *text, char **end)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t was = uselocale(plain);
    const double value = strtod(text, end);

    uselocale(was);
    if (plain)
        freelocale(plain);
    return value;
}

bool dtn_parse_size(const char *text, uint64_t *bytes)
{
    static const char suffixes[] = "KMGT";
    const char *s;
    uint64_t value;
    int shift = 0;

    if (!parse_digits(&text, 10, &value))
        return false;
    if (*text) {
        s = strchr(suffixes, *text);
        if (!s || text[1])
            return false;
        shift = 10 * (int)(s - suffixes + 1);
    }
    if (value > UINT64_MAX >> shift)
        return false;
    *bytes = value << shift;
    return true;
}

bool dtn_parse_time(const char *text, int64_t *ns)
{
    static const struct { const char *unit; int64_t ns; } units[] = {
        { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
        { "min", 60000000000 }
    };
    uint64_t value;

    if (!parse_digits(&text, 10, &value))
        return false;
    for (size_t i = 0; i < DTN_COUNT(units); i++) {
        if (strcmp(text, units[i].unit) != 0)
            continue;
        if (value > (uint64_t)(INT64_MAX / units[i].ns))
            return false;
        *ns = (int64_t)value * units[i].ns;
        return true;
    }
    return false;
}

char *dtn_format_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB",
                                        "EiB" };
    double value = (double)bytes / 1024;
    size_t i = 0;

    if (bytes < 1024) {
        snprintf(buf, size, "%d byte%s", (int)bytes, bytes == 1 ? "" : "s");
        return buf;
    }
    for (; value >= 1023.95 && i + 1 < DTN_COUNT(names); i++)
        value /= 1024;
    snprintf(buf, size, "%.1f %s", value, names[i]);
    return buf;
}

char *dtn_format_time(int64_t ns, char *buf, size_t size)
{
    if (ns < 1000)
        snprintf(buf, size, "%d ns", (int)ns);
    else if (ns < 1000000)
        snprintf(buf, size, "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(buf, size, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(buf, size, "%.1f s", (double)ns / 1e9);
    return buf;
}

char *dtn_format_ranks(const int ranks[], int n, char *buf, size_t size)
{
    size_t used = 0;
    int first, last;

    buf[0] = '\0';
    for (first = 0; first < n && used + 28 < size; first = last + 1) {
        for (last = first; last + 1 < n && ranks[last + 1] == ranks[last] + 1;)
            last++;
        used += (size_t)snprintf(buf + used, size - used,
                                 first == last ? "%s%d" : "%s%d-%d",
                                 first ? "," : "", ranks[first], ranks[last]);
    }
    if (first < n)
        snprintf(buf + used, size - used, "...");
    return buf;
}
