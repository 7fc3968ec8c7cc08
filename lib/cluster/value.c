/* value.c - one value of a cluster file, read and written back
 *
 * `pipeline = 512K` is the text "512K" and the row for "pipeline"; the row says
 * that it is a size of 4K to 1T, and where 524288 is to go.  Writing it back
 * gives the shortest form, so that 512K, 524288 and 0512K are the same
 * canonical text.
 */
#include "cluster/value.h"
#include "base/compiler.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/sections.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

bool dtn_name_ok(const char *name)
{
    size_t n = strlen(name);
    const char *letters = "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return n >= 1 && n <= DTENSOR_NAME_MAX && strchr(letters, name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

char *dtn_exact_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const suffixes[] = { "", "K", "M", "G", "T" };
    int i = 0;

    while (bytes != 0 && bytes % 1024 == 0 && i < 4) {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, size, "%" PRIu64 "%s", bytes, suffixes[i]);
    return buf;
}

char *dtn_exact_time(int64_t ns, char *buf, size_t size)
{
    static const struct { const char *unit; int64_t ns; } units[] = {
        { "min", 60000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
        { "us", 1000 }
    };
    size_t i = 0;

    while (i + 1 < DTN_COUNT(units) && ns % units[i].ns != 0)
        i++;
    snprintf(buf, size, "%" PRId64 "%s", ns / units[i].ns, units[i].unit);
    return buf;
}

/* A bound of the row, in the form of the file. */
static const char *value_bound(const struct dtn_key *key, int64_t bound,
                               char *buf, size_t size)
{
    if (key->type == DTN_VALUE_SIZE_BYTES || key->type == DTN_VALUE_SHARE)
        return dtn_exact_size((uint64_t)bound, buf, size);
    if (key->type == DTN_VALUE_TIME_NS)
        return dtn_exact_time(bound, buf, size);
    snprintf(buf, size, "%" PRId64, bound);
    return buf;
}

static bool value_outside(const struct dtn_key *key, const char *text,
                          char why[DTN_WHY_SIZE])
{
    char min[32], max[32];

    snprintf(why, DTN_WHY_SIZE, "%s is out of range; expected %s to %s", text,
             value_bound(key, key->min, min, sizeof min),
             value_bound(key, key->max, max, sizeof max));
    return false;
}

static bool value_digits(const char *text)
{
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

static bool value_int(const struct dtn_key *key, const char *text, void *to,
                      char why[DTN_WHY_SIZE])
{
    uint64_t value;
    int number;

    if (!value_digits(text)) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\" is not a whole number; expected "
                 "%" PRId64 " to %" PRId64, text, key->min, key->max);
        return false;
    }
    if (!dtn_parse_u64(text, false, (uint64_t)key->max, &value) ||
        value < (uint64_t)key->min)
        return value_outside(key, text, why);
    number = (int)value;
    memcpy(to, &number, sizeof number);
    return true;
}

static bool value_hex(const struct dtn_key *key, const char *text, void *to,
                      char why[DTN_WHY_SIZE])
{
    uint64_t value;
    int number;

    if (!dtn_parse_u64(text, true, (uint64_t)key->max, &value) ||
        value < (uint64_t)key->min) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\"; expected 0x%" PRIx64 " to "
                 "0x%" PRIx64, text, (uint64_t)key->min, (uint64_t)key->max);
        return false;
    }
    number = (int)value;
    memcpy(to, &number, sizeof number);
    return true;
}

static bool value_u64(const struct dtn_key *key, const char *text, void *to,
                      char why[DTN_WHY_SIZE])
{
    uint64_t value;

    if (!dtn_parse_u64(text, true, UINT64_MAX, &value)) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\" is not a whole number; expected "
                 "0 to 18446744073709551615, or 0x and hexadecimal digits",
                 text);
        return false;
    }
    memcpy(to, &value, sizeof value);
    return true;
}

static bool value_size(const struct dtn_key *key, const char *text, void *to,
                       char why[DTN_WHY_SIZE])
{
    uint64_t bytes;

    if (!dtn_parse_size(text, &bytes)) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\" is not a size; expected a number "
                 "of bytes with an optional K, M, G or T (powers of 1024)",
                 text);
        return false;
    }
    if (bytes < (uint64_t)key->min || bytes > (uint64_t)key->max)
        return value_outside(key, text, why);
    memcpy(to, &bytes, sizeof bytes);
    return true;
}

/* "50%", or a size. */
static bool value_share(const struct dtn_key *key, const char *text, void *to,
                        char why[DTN_WHY_SIZE])
{
    struct dtn_share share = { 0, 0 };
    size_t n = strcspn(text, "%");
    uint64_t percent;
    char digits[8];

    if (!text[n]) {
        if (!value_size(key, text, &share.bytes, why))
            return false;
        memcpy(to, &share, sizeof share);
        return true;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)n, text);
    if (text[n + 1] || n >= sizeof digits
        || !dtn_parse_u64(digits, false, 100, &percent) || percent == 0) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\" is not a part of the memory; "
                 "expected 1%% to 100%%, or a size", text);
        return false;
    }
    share.percent = (int)percent;
    memcpy(to, &share, sizeof share);
    return true;
}

static bool value_time(const struct dtn_key *key, const char *text, void *to,
                       char why[DTN_WHY_SIZE])
{
    int64_t ns;

    if (!dtn_parse_time(text, &ns)) {
        snprintf(why, DTN_WHY_SIZE, "\"%s\" is not a time; expected a whole "
                 "number with its unit us, ms, s or min, such as 30s", text);
        return false;
    }
    if (ns < key->min || ns > key->max)
        return value_outside(key, text, why);
    memcpy(to, &ns, sizeof ns);
    return true;
}

static bool value_word(const struct dtn_key *key, const char *text, void *to,
                       char why[DTN_WHY_SIZE])
{
    const char *known[16] = { NULL };
    char advice[DTN_WHY_SIZE / 2];
    int n = 0;

    for (const struct dtn_word *word = key->words; word->text; word++) {
        known[n++] = word->text;
        if (strcmp(word->text, text) != 0)
            continue;
        memcpy(to, &word->number, sizeof word->number);
        return true;
    }
    snprintf(why, DTN_WHY_SIZE, "\"%s\"; %s", text,
             dtensor_advise(text, known, NULL, advice, sizeof advice));
    return false;
}

static bool value_name(const struct dtn_key *key, const char *text, void *to,
                       char why[DTN_WHY_SIZE])
{
    if (!dtn_name_ok(text)) {
        snprintf(why, DTN_WHY_SIZE, "bad name \"%s\"; expected "
                 DTN_NAME_GRAMMAR, text);
        return false;
    }
    strcpy(to, text);
    return true;
}

bool dtn_value_parse(const struct dtn_key *key, const char *text, void *base,
                     char why[DTN_WHY_SIZE])
{
    void *to = (char *)base + key->offset;

    switch (key->type) {
    case DTN_VALUE_INT:
        return value_int(key, text, to, why);
    case DTN_VALUE_HEX:
        return value_hex(key, text, to, why);
    case DTN_VALUE_U64:
        return value_u64(key, text, to, why);
    case DTN_VALUE_SIZE_BYTES:
        return value_size(key, text, to, why);
    case DTN_VALUE_SHARE:
        return value_share(key, text, to, why);
    case DTN_VALUE_TIME_NS:
        return value_time(key, text, to, why);
    case DTN_VALUE_WORD:
        return value_word(key, text, to, why);
    case DTN_VALUE_NAME:
        return value_name(key, text, to, why);
    case DTN_VALUE_OTHER:
        break;
    }
    return true;
}

static void value_print_int(const struct dtn_key *key, int number,
                            FILE *stream)
{
    const char *text = NULL;

    if (key->type == DTN_VALUE_WORD)
        text = dtn_word_text(key->words, number);
    if (text)
        fputs(text, stream);
    else if (number < 0)
        fputs("default", stream);
    else if (key->type == DTN_VALUE_HEX)
        fprintf(stream, "0x%04x", (unsigned)number);
    else
        fprintf(stream, "%d", number);
}

static void value_print_share(const struct dtn_share *share, FILE *stream)
{
    char buf[32];

    if (share->bytes == 0)
        fprintf(stream, "%d%%", share->percent);
    else
        fputs(dtn_exact_size(share->bytes, buf, sizeof buf), stream);
}

void dtn_value_print(const struct dtn_key *key, const void *base, FILE *stream)
{
    const char *from = (const char *)base + key->offset;
    struct dtn_share share;
    char buf[32];
    int number;
    uint64_t value;

    switch (key->type) {
    case DTN_VALUE_INT:
    case DTN_VALUE_HEX:
    case DTN_VALUE_WORD:
        memcpy(&number, from, sizeof number);
        value_print_int(key, number, stream);
        return;
    case DTN_VALUE_NAME:
        fputs(from, stream);
        return;
    case DTN_VALUE_SHARE:
        memcpy(&share, from, sizeof share);
        value_print_share(&share, stream);
        return;
    case DTN_VALUE_OTHER:
        return;
    default:
        break;
    }
    memcpy(&value, from, sizeof value);
    if (key->type == DTN_VALUE_SIZE_BYTES)
        fputs(dtn_exact_size(value, buf, sizeof buf), stream);
    else if (key->type == DTN_VALUE_TIME_NS)
        fputs(dtn_exact_time((int64_t)value, buf, sizeof buf), stream);
    else
        fprintf(stream, "%" PRIu64, value);
}
