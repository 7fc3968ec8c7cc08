/* rng_options.c - the command line of dtensor-bench rng
 *
 * A table again: name, argument, how it is read, and where it goes.  A
 * distribution is a word and its numbers, "normal:0,0.5"; what is left out is
 * as in PyTorch.
 */
#include "tools/bench/bench.h"
#include "tools/bench/mode.h"
#include "tools/bench/options.h"
#include "tools/bench/read.h"
#include "tools/bench/rng.h"
#include "dtensor.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const tracker_words[] = {
    [DTENSOR_TRACKER_GLOBAL] = "global", [DTENSOR_TRACKER_OFFSET] = "offset",
    [DTENSOR_TRACKER_MEGATRON] = "megatron", [DTENSOR_TRACKER_LOCAL] = "local",
    NULL
};
static const char *const fill_words[] = {
    [DTENSOR_FILL_SEQUENTIAL] = "sequential", [DTENSOR_FILL_CUDA] = "cuda",
    NULL
};

const struct rng_dist rng_dists[] = {
    { "uniform", 2, false, { 0, 1 } },
    { "normal", 2, false, { 0, 1 } },
    { "log_normal", 2, false, { 0, 1 } },
    { "exponential", 1, false, { 1 } },
    { "bernoulli", 1, false, { 0.5 } },
    { "trunc_normal", 4, false, { 0, 1, -2, 2 } },
    { "integers", 2, true, { 0, 1 << 16 } },
    { "bits", 0, false, { 0 } },
};
const int rng_ndists = BENCH_COUNT(rng_dists);

/* --------------------------------------------------------------- values --- */

/* Base 0 of strtoull() would take 010 for 8. */
static int option_base(const char *text)
{
    text += *text == '-' || *text == '+';
    return text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
}

/* 0 .. 2^64 - 1, decimal or after 0x; strtoull alone would take -1. */
static bool option_u64(const char *text, uint64_t *valuep)
{
    char *rest;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &rest, option_base(text));
    if (errno || rest == text || *rest || strchr(text, '-'))
        return false;
    *valuep = value;
    return true;
}

static bool option_word(const char *const words[], const char *text,
                        int64_t *valuep)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *valuep = i;
            return true;
        }
    return false;
}

/* One number of a distribution, kept both ways: 2^53 + 1 is no double, and 0.5
 * no whole number, which *exactp then says; 1e6 is one.
 */
static bool dist_number(const char **textp, double *realp, int64_t *wholep,
                        bool *exactp)
{
    char *rest, *whole;

    *realp = strtod(*textp, &rest);
    if (rest == *textp)
        return false;
    errno = 0;
    *wholep = strtoll(*textp, &whole, option_base(*textp));
    if (whole != rest || errno) {
        const bool fits = *realp >= -0x1p53 && *realp <= 0x1p53;

        *wholep = fits ? (int64_t)*realp : 0;
        *exactp = *exactp && fits && (double)*wholep == *realp;
    }
    *textp = rest;
    return true;
}

static bool option_dist(const char *text, struct rng_options *opt)
{
    const size_t length = strcspn(text, ":");
    const struct rng_dist *dist = NULL;
    const char *at = text + length;
    bool exact = true;
    int n = 0;

    for (int i = 0; i < rng_ndists; i++)
        if (strlen(rng_dists[i].name) == length &&
            strncmp(rng_dists[i].name, text, length) == 0)
            dist = &rng_dists[i];
    if (!dist)
        return false;
    opt->dist = dist;
    opt->only = true;
    memcpy(opt->param, dist->param, sizeof opt->param);
    for (int i = 0; i < 4; i++)
        opt->whole[i] = (int64_t)dist->param[i];
    while (*at) {
        at++;                              /* the colon, or a comma          */
        if (n == dist->nparams ||
            !dist_number(&at, &opt->param[n], &opt->whole[n], &exact) ||
            (*at && *at != ',') || (!exact && dist->whole))
            return false;
        n++;
    }
    return n == 0 || n == dist->nparams;
}

/* ---------------------------------------------------------------- table --- */

enum rng_option {
    RNG_PRINT, RNG_SEED, RNG_OFFSET, RNG_DIST, RNG_DTYPE, RNG_TRACKER, RNG_FILL,
    RNG_SMS, RNG_THREADS, RNG_PYTORCH, RNG_PARALLEL, RNG_MESH, RNG_PLACEMENTS,
    RNG_SHAPE, RNG_RANK, RNG_BYTES, RNG_ITERS, RNG_HELP, RNG_NOPTIONS
};

static const struct mode_row rng_rows[RNG_NOPTIONS] = {
    [RNG_PRINT] = { "print", "N", "print N values instead of measuring" },
    [RNG_SEED] = { "seed", "S", "0 to 2^64 - 1 (0)" },
    [RNG_OFFSET] = { "offset", "O", "a multiple of 4 (0)" },
    [RNG_DIST] = { "dist", "D", "such as normal:0,0.5; see below (uniform)" },
    [RNG_DTYPE] = { "dtype", "T", "element type (f32)" },
    [RNG_TRACKER] = { "tracker", "T",
                      "global, offset, megatron or local (global)" },
    [RNG_FILL] = { "fill", "F", "sequential or cuda (sequential)" },
    [RNG_SMS] = { "sms", "N", "cuda: multiprocessors of the GPU (132)" },
    [RNG_THREADS] = { "threads", "N", "cuda: threads of each (2048)" },
    [RNG_PYTORCH] = { "pytorch", NULL, "offset: exactly PyTorch's offsets" },
    [RNG_PARALLEL] = { "parallel", "DIMS", "megatron: mesh dimensions (tp)" },
    [RNG_MESH] = { "mesh", "[NAME=]NxM", "mesh of that shape, such as "
                   "dp=2,tp=2 or 2x2 (1)" },
    [RNG_PLACEMENTS] = { "placements", "P",
                         "such as \"S(0),R\" (S(0), R ...)" },
    [RNG_SHAPE] = { "shape", "NxM", "global shape (N of --print)" },
    [RNG_RANK] = { "rank", "R", "whose part to print (0)" },
    [RNG_BYTES] = { "bytes", "SIZE", "buffer to measure with (256M)" },
    [RNG_ITERS] = { "iters", "N", "times; the best counts (5)" },
    [RNG_HELP] = { "help", NULL, "print this" },
};

static bool rng_size(const char *text, int64_t *valuep)
{
    char digits[24];
    size_t n = strlen(text);
    int shift = 0;

    if (n == 0 || n >= sizeof digits)
        return false;
    strcpy(digits, text);
    if (strchr("KMG", digits[n - 1])) {
        shift = digits[n - 1] == 'K' ? 10 : digits[n - 1] == 'M' ? 20 : 30;
        digits[n - 1] = '\0';
    }
    if (!mode_number(digits, 1, INT64_C(1) << 20, valuep) &&
        !(shift == 0 && mode_number(digits, 1, INT64_C(1) << 40, valuep)))
        return false;
    *valuep <<= shift;
    return true;
}

static bool rng_dtype(const char *text, struct rng_options *opt, char *why,
                      size_t why_size)
{
    struct dtensor_error err;

    if (dtensor_dtype_parse(text, &opt->dtype, &err) == 0)
        return true;
    snprintf(why, why_size, "--dtype: %s", err.text);
    return false;
}

/* An option that sets a field of the generator's rule. */
static bool rng_set_rule(enum rng_option which, const char *text,
                         struct dtensor_random_rule *rule)
{
    int64_t value = 0;
    bool good = false;

    if (which == RNG_TRACKER) {
        good = option_word(tracker_words, text, &value);
        rule->tracker = (enum dtensor_tracker)value;
    } else if (which == RNG_FILL) {
        good = option_word(fill_words, text, &value);
        rule->fill = (enum dtensor_fill)value;
    } else if (which == RNG_SMS) {
        good = mode_number(text, 1, 1 << 20, &value);
        rule->sms = (int)value;
    } else if (which == RNG_THREADS) {
        good = mode_number(text, 256, 1 << 20, &value);
        rule->threads_per_sm = (int)value;
    } else if (which == RNG_PARALLEL) {
        good = strlen(text) < sizeof rule->parallel_dims;
        if (good)
            strcpy(rule->parallel_dims, text);
    }
    return good;
}

static bool rng_set(int which, const char *text, void *options, char *why,
                    size_t why_size)
{
    struct rng_options *opt = options;

    switch ((enum rng_option)which) {
    case RNG_PRINT:
        return mode_number(text, 1, INT64_C(1) << 40, &opt->print);
    case RNG_OFFSET:
        return mode_number(text, 0, INT64_MAX, &opt->offset);
    case RNG_RANK:
        return mode_number(text, 0, 1023, &opt->rank);
    case RNG_ITERS:
        return mode_number(text, 1, 1000000, &opt->iters);
    case RNG_SEED:       return option_u64(text, &opt->seed);
    case RNG_DIST:       return option_dist(text, opt);
    case RNG_DTYPE:      return rng_dtype(text, opt, why, why_size);
    case RNG_BYTES:      return rng_size(text, &opt->bytes);
    case RNG_PYTORCH:    opt->rule.pytorch = 1; return true;
    case RNG_MESH:       opt->mesh = text; return true;
    case RNG_PLACEMENTS: opt->placements = text; return true;
    case RNG_SHAPE:      opt->shape = text; return true;
    case RNG_HELP:       opt->help = true; return true;
    case RNG_TRACKER: case RNG_FILL: case RNG_SMS: case RNG_THREADS:
    case RNG_PARALLEL:
        return rng_set_rule((enum rng_option)which, text, &opt->rule);
    case RNG_NOPTIONS:   break;
    }
    return false;
}

/* "2x2", or "dp=2,tp=2": sizes, and names if there are any. */
static bool rng_mesh(struct rng_options *opt)
{
    const char *at = opt->mesh;
    size_t used = 0;
    char *rest;
    long size;

    opt->nranks = 1;
    for (opt->mesh_ndim = 0; opt->mesh_ndim < DTENSOR_MAX_DIMS;) {
        const size_t name = strcspn(at, "=x,");

        if (at[name] == '=') {
            used += (size_t)snprintf(opt->mesh_names + used,
                                     sizeof opt->mesh_names - used, "%s%.*s",
                                     used ? "," : "", (int)name, at);
            if (used >= sizeof opt->mesh_names)
                return false;
            at += name + 1;
        }
        size = strtol(at, &rest, 10);
        if (rest == at || size < 1 || size > 1024 || opt->nranks > 1024 / size)
            return false;
        opt->mesh_size[opt->mesh_ndim++] = (int)size;
        opt->nranks *= (int)size;
        if (!*rest)
            return true;
        if (*rest != 'x' && *rest != ',')
            return false;
        at = rest + 1;
    }
    return false;
}

static bool rng_check(struct rng_options *opt, char *why, size_t why_size)
{
    opt->ndim = opt->shape ? read_shape(opt->shape, opt->sizes) : 1;
    if (!opt->shape)
        opt->sizes[0] = opt->print ? opt->print : opt->bytes /
            (int64_t)dtensor_dtype_size(opt->dtype);
    if (opt->ndim == 0)
        snprintf(why, why_size, "--shape \"%s\": expected 1 to %d numbers such "
                 "as 4096x4096", opt->shape, DTENSOR_MAX_DIMS);
    else if (!rng_mesh(opt))
        snprintf(why, why_size, "--mesh \"%s\": expected sizes of up to 1024 "
                 "ranks such as 2x2 or dp=2,tp=2", opt->mesh);
    else if (opt->rank >= opt->nranks)
        snprintf(why, why_size, "--rank %lld: the mesh has %d ranks",
                 (long long)opt->rank, opt->nranks);
    else if (opt->offset % 4 != 0)
        snprintf(why, why_size, "--offset %lld: expected a multiple of 4",
                 (long long)opt->offset);
    else
        return true;
    return false;
}

static const struct mode rng_mode = { "rng", rng_rows, RNG_NOPTIONS, rng_set };

bool rng_options_parse(struct rng_options *opt, int argc, char *argv[],
                       char *why, size_t why_size)
{
    *opt = (struct rng_options){
        .dist = &rng_dists[0], .param = { 0, 1 }, .whole = { 0, 1 },
        .mesh = "1", .bytes = 256 << 20, .iters = 5,
        .rule = { .sms = 132, .threads_per_sm = 2048, .parallel_dims = "tp" }
    };
    if (!mode_parse(&rng_mode, argc, argv, opt, why, why_size))
        return false;
    if (optind < argc) {
        snprintf(why, why_size, "%s: rng takes options only", argv[optind]);
        return false;
    }
    return opt->help || rng_check(opt, why, why_size);
}

void rng_options_help(FILE *stream)
{
    fputs("Usage: dtensor-bench rng [OPTION]...\n"
          "Measure how fast random numbers are made, or print them.\n\n",
          stream);
    mode_help(&rng_mode, stream);
    fputs("\nDistributions, and their numbers:\n"
          "  uniform:FROM,TO  normal:MEAN,STD  log_normal:MEAN,STD\n"
          "  exponential:RATE  bernoulli:P  trunc_normal:MEAN,STD,FROM,TO\n"
          "  integers:FROM,TO  bits\n", stream);
}

const char *rng_tracker_word(enum dtensor_tracker tracker)
{
    return tracker_words[tracker];
}

const char *rng_fill_word(enum dtensor_fill fill)
{
    return fill_words[fill];
}
