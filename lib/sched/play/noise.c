/* noise.c - interruptions of CPUs
 *
 * A daemon that runs for 10 us each ms costs a rank 1 %, but of 10,000 ranks
 * that wait for each other some rank is interrupted in almost every step.
 * Interruptions come from a distribution or from a trace, which a loop that
 * reads the clock can record.  An interruption that begins while a rank waits
 * delays the rank only if it lasts longer than the wait.
 */
#include "sched/play/noise.h"
#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "dtensor.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An interruption of a trace. */
struct detour {
    double start_ns, length_ns;
};

struct dtn_noise {
    double length_ns;             /* mean; of a trace the sum                 */
    double every_ns;              /* mean distance; 0: a trace                */
    struct detour *detour;        /* [n] in order                             */
    int n, capacity;              /* used and allocated                       */
    double end_ns;                /* of the trace                             */
    char name[200];               /* of its file, for messages                */
};

/* -------------------------------------------------------------- reading --- */

/* The number at *atp, which moves behind it; false: there is none. */
static bool number_read(const char **atp, double *numberp)
{
    char *end;

    *numberp = dtn_parse_real(*atp, &end);
    if (end == *atp)
        return false;
    *atp = end;
    return true;
}

static int line_wrong(const struct dtn_noise *noise, int line, const char *what,
                      struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_EINVAL, "noise: %s:%d: %s (expected START "
                    "LENGTH in ns, in order, then end TIME)", noise->name, line,
                    what);
}

static int detour_add(struct dtn_noise *noise, struct detour detour, int line,
                      struct dtensor_error *err)
{
    const struct detour *last = noise->n ? &noise->detour[noise->n - 1] : NULL;

    if (!(detour.length_ns >= 0)
        || !(detour.start_ns >= (last ? last->start_ns + last->length_ns : 0)))
        return line_wrong(noise, line, "begins before the one before it ends",
                          err);
    if (!dtn_array_reserve(&noise->detour, &noise->capacity, noise->n + 1,
                           sizeof detour))
        return dtn_fail_nomem(err, "noise", (size_t)noise->n * sizeof detour);
    noise->detour[noise->n++] = detour;
    noise->length_ns += detour.length_ns;
    return 0;
}

static int line_read(struct dtn_noise *noise, const char *text, int line,
                     struct dtensor_error *err)
{
    const char *at = strncmp(text, "end", 3) == 0 ? text + 3 : text;
    struct detour detour;
    double end;

    if (noise->end_ns > 0)
        return line_wrong(noise, line, "after the end", err);
    if (at > text && number_read(&at, &end)) {
        if (!isfinite(end) || end <= 0 || (noise->n > 0
            && end < noise->detour[noise->n - 1].start_ns
                   + noise->detour[noise->n - 1].length_ns))
            return line_wrong(noise, line, "ends before its last line", err);
        noise->end_ns = end;
        return 0;
    }
    if (!number_read(&at, &detour.start_ns) ||
        !number_read(&at, &detour.length_ns))
        return line_wrong(noise, line, "no two numbers", err);
    return detour_add(noise, detour, line, err);
}

static int trace_read(struct dtn_noise *noise, const char *path,
                      struct dtensor_error *err)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    int rc = 0;

    snprintf(noise->name, sizeof noise->name, "%s", path);
    if (!file)
        return dtn_fail_sys(err, errno, "noise: cannot read %s: %m (give the "
                            "path of a trace)", path);
    for (int line = 1; rc == 0 && getline(&text, &size, file) > 0; line++)
        if (text[0] != '#')
            rc = line_read(noise, text, line, err);
    if (rc == 0 && !feof(file))
        rc = dtn_fail_sys(err, errno, "noise: cannot read %s: %m (give the "
                          "path of a trace)", path);
    free(text);
    fclose(file);
    if (rc == 0 && noise->end_ns <= 0)
        rc = dtn_fail(err, DTENSOR_EINVAL, "noise: %s: no line \"end TIME\": "
                      "the trace was cut off (record it again)", path);
    if (rc == 0 && noise->length_ns > 0.9 * noise->end_ns)
        rc = dtn_fail(err, DTENSOR_EINVAL, "noise: %s leaves a rank %.0f of "
                      "%.0f ns (at least a tenth is needed)", path,
                      noise->end_ns - noise->length_ns, noise->end_ns);
    return rc;
}

int dtn_noise_read(const char *text, struct dtn_noise **noisep,
                   struct dtensor_error *err)
{
    struct dtn_noise *noise = calloc(1, sizeof *noise);
    const char *at = text;
    int rc = 0;

    if (!noise)
        return dtn_fail_nomem(err, "noise", sizeof *noise);
    if (strncmp(text, "file:", 5) == 0)
        rc = trace_read(noise, text + 5, err);
    else if (!number_read(&at, &noise->length_ns) || *at++ != '/'
             || !number_read(&at, &noise->every_ns) || *at
             || !isfinite(noise->length_ns)
             || !isfinite(noise->every_ns) || noise->length_ns <= 0
             || noise->every_ns <= noise->length_ns)
        rc = dtn_fail(err, DTENSOR_EINVAL, "noise \"%s\": expected "
                      "LENGTH/EVERY in ns, EVERY larger, or file:PATH", text);
    if (rc == 0)
        *noisep = noise;
    else
        dtn_noise_free(noise);
    return rc;
}

void dtn_noise_free(struct dtn_noise *noise)
{
    if (noise)
        free(noise->detour);
    free(noise);
}

/* ------------------------------------------------------------ distribution */

/* An exponential number; splitmix64 is the generator. */
static double exponential(uint64_t *state, double mean)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return -mean * log(((double)(z >> 11) + 0.5) / 9007199254740992.0);
}

/* The interruption after this one. */
static void noise_next(const struct dtn_noise *noise, struct dtn_noise_at *at)
{
    if (noise->every_ns > 0) {
        at->start_ns += at->length_ns + exponential(&at->next, noise->every_ns);
        at->length_ns = exponential(&at->next, noise->length_ns);
        return;
    }
    if (noise->n == 0) {
        at->start_ns = INFINITY;
        return;
    }
    if (++at->next >= (uint64_t)noise->n) {
        at->next = 0;
        at->round_ns += noise->end_ns;
    }
    at->start_ns = noise->detour[at->next].start_ns + at->round_ns;
    at->length_ns = noise->detour[at->next].length_ns;
}

void dtn_noise_begin(const struct dtn_noise *noise, int rank,
                     struct dtn_noise_at *at)
{
    const double place = fmod(rank * 0.6180339887498949, 1);

    *at = (struct dtn_noise_at){ .next = noise->every_ns > 0 ? (uint64_t)rank
                                                             : UINT64_MAX };
    if (noise->every_ns <= 0)
        at->round_ns = -place * noise->end_ns - noise->end_ns;
    noise_next(noise, at);
    while (at->start_ns + at->length_ns < 0)
        noise_next(noise, at);
}

double dtn_noise_after(const struct dtn_noise *noise, struct dtn_noise_at *at,
                       double start_ns, double work_ns)
{
    double end_ns = start_ns + work_ns;

    while (at->start_ns < end_ns) {
        const double over = at->start_ns + at->length_ns;

        if (over > start_ns)
            end_ns += over - fmax(at->start_ns, start_ns);
        noise_next(noise, at);
    }
    return end_ns;
}

int dtn_noise_covers(const struct dtn_noise *noise, double run_ns,
                     struct dtensor_error *err)
{
    if (noise->every_ns > 0 || run_ns <= noise->end_ns)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "noise: %s ends at %.0f ns, the run "
                    "takes %.0f (record a longer trace)", noise->name,
                    noise->end_ns, run_ns);
}
