/* op_report.c - what dtensor-bench op prints
 *
 * Lines that are not results begin with `#`.  The targets come last.  Each says
 * whether it was met, and if not, by how much it was missed.
 */
#include "config.h"
#include "tools/bench/bench.h"
#include "tools/bench/op.h"
#include "tools/bench/report.h"
#include "dtensor.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif
#include <string.h>

/* With --json - only JSON has the standard output. */
static bool is_quiet(const struct op_options *opt)
{
    return opt->json && strcmp(opt->json, "-") == 0;
}

void op_report_header(const struct op_options *opt, FILE *stream)
{
    if (is_quiet(opt))
        return;
    fprintf(stream, "# dtensor-bench op %s (%s)\n", dtensor_version(),
            dtensor_build());
    fprintf(stream, "# %lldx%lld %s, first %s, others %s, %lld rank%s%s; us a "
            "call, of the slowest rank\n", (long long)opt->shape[0],
            (long long)opt->shape[1], dtensor_dtype_name(opt->dtype),
            opt->first, opt->others, (long long)opt->ranks,
            opt->ranks == 1 ? "" : "s", opt->repro ? ", repro" : "");
    fputs("# bound     of products the BLAS alone, of others a copy of the "
          "bytes of a rank's inputs and output\n", stream);
    fprintf(stream, "# %-14s %10s %10s %10s %10s %8s %s\n", "case", "min",
            "p50", "p99", "bound", "times", "rate");
    fflush(stream);
}

void op_report_row(const struct op_options *opt, const struct op_result *row,
                   FILE *stream)
{
    if (is_quiet(opt))
        return;
    fprintf(stream, "%-16s %10.3f %10.3f %10.3f", row->what->name, row->us.min,
            row->us.p50, row->us.p99);
    if (row->bound_us > 0)
        fprintf(stream, " %10.3f %8.3f", row->bound_us,
                row->us.p50 / row->bound_us);
    else
        fprintf(stream, " %10s %8s", "-", "-");
    if (row->what->kind == OP_MULTIPLIES)
        fprintf(stream, " %.1f Gflop/s a rank\n",
                row->flops / row->us.p50 / 1e3);
    else if (row->what->kind == OP_MOVES)
        fprintf(stream, " %.2f GB/s a rank\n", row->bytes / row->us.p50 / 1e3);
    else
        fputs(" -\n", stream);
    fflush(stream);
}

/* -------------------------------------------------------------- targets --- */

/* What is promised of a case; `most` in us, or in times of the bound. */
static const struct target {
    const char *name, *what;
    double most;
    bool of_bound;
} targets[] = {
    { "infer-hit", "a decision that is found", 0.1, false },
    { "infer-miss", "a decision that is made", 100, false },
    { "call-into", "a call on 8x8, with its arithmetic", 0.3, false },
    { "matmul", "no slower than the BLAS alone, within 3%", 1.03, true },
    { "linear", "no slower than the BLAS alone, within 3%", 1.03, true },
};

static double target_value(const struct target *t, const struct op_result *row)
{
    return t->of_bound ? row->us.p50 / row->bound_us : row->us.p50;
}

/* The target of a row; NULL: it has none. */
static const struct target *target_of(const struct op_result *row)
{
    for (size_t i = 0; i < BENCH_COUNT(targets); i++)
        if (strcmp(targets[i].name, row->what->name) == 0 &&
            !(targets[i].of_bound && row->bound_us == 0))
            return &targets[i];
    return NULL;
}

void op_report_targets(const struct op_options *opt,
                       const struct op_result rows[], FILE *stream)
{
    for (int i = 0; i < opt->ncases && !is_quiet(opt); i++) {
        const struct target *t = target_of(&rows[i]);
        const double value = t ? target_value(t, &rows[i]) : 0;

        if (t)
            fprintf(stream, "# target: %s: %s, %.3g %s: %s (%.3g)\n", t->name,
                    t->what, t->most, t->of_bound ? "times" : "us",
                    value <= t->most ? "met" : "missed", value);
    }
}

/* ----------------------------------------------------------------- JSON --- */

#ifdef HAVE_JANSSON

static json_t *json_of(const struct op_result *row)
{
    const struct target *t = target_of(row);
    json_t *one = json_pack("{ss s{sf sf sf sf} sf sf}", "case",
                            row->what->name, "time_us", "min", row->us.min,
                            "p50", row->us.p50, "p99", row->us.p99, "max",
                            row->us.max, "bytes", row->bytes, "flops",
                            row->flops);

    if (row->bound_us > 0)
        json_object_set_new(one, "bound_us", json_real(row->bound_us));
    if (t)
        json_object_set_new(one, "met",
                            json_boolean(target_value(t, row) <= t->most));
    return one;
}

bool op_report_json(const struct op_options *opt,
                    const struct op_result rows[])
{
    FILE *stream = is_quiet(opt) ? stdout : fopen(opt->json, "w");
    json_t *results = json_array(), *root;
    bool good;

    for (int i = 0; i < opt->ncases; i++)
        json_array_append_new(results, json_of(&rows[i]));
    root = json_pack("{si ss ss s[II] ss ss ss sI sb so}", "schema", 1,
                     "version", dtensor_version(), "build", dtensor_build(),
                     "shape", (json_int_t)opt->shape[0],
                     (json_int_t)opt->shape[1], "dtype",
                     dtensor_dtype_name(opt->dtype), "first", opt->first,
                     "others", opt->others, "ranks", (json_int_t)opt->ranks,
                     "repro", opt->repro, "results", results);
    good = stream && json_dumpf(root, stream, JSON_INDENT(2) |
                                JSON_REAL_PRECISION(6)) == 0 &&
           fputc('\n', stream) != EOF;
    json_decref(root);
    if (stream && stream != stdout)
        good = fclose(stream) == 0 && good;
    return good;
}

#else

/* Never called: op_options.c has refused --json. */
bool op_report_json(const struct op_options *opt,
                    const struct op_result rows[])
{
    (void)opt;
    (void)rows;
    return false;
}

#endif
