/* options.c - the one table of options
 *
 * A row says letter, long name, argument, default, range and meaning of an
 * option.  The command line and the defaults are read by it, and --help is
 * printed from it.  The default of -e is the text "4M", read by the same reader
 * as the user's.
 */
#include "tools/bench/aliases.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/read.h"
#include "tools/bench/report.h"
#include "tools/bench/tests.h"
#include "tools/bench/value.h"
#include "tools/cli.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum option_kind {
    OPTION_FLAG, OPTION_NUMBER, OPTION_SIZE, OPTION_TIME, OPTION_PERCENT,
    OPTION_TEXT, OPTION_DTYPE, OPTION_REDOP
};

struct option_row {
    int letter;                   /* 0: long name only                        */
    const char *name, *arg, *initial;
    enum option_kind kind;
    size_t at;                    /* in struct bench_options                  */
    int64_t min, max;
    const char *help;
};

#define AT(field) offsetof(struct bench_options, field)

static const struct option_row option_rows[] = {
    { 'b', "minbytes", "SIZE", "8", OPTION_SIZE, AT(min_bytes), 1, READ_BIG,
      "smallest message; K, M, G are powers of 1024" },
    { 'e', "maxbytes", "SIZE", "4M", OPTION_SIZE, AT(max_bytes), 1, READ_BIG,
      "largest message" },
    { 'f', "stepfactor", "N", "4", OPTION_NUMBER, AT(step_factor), 2, 1 << 20,
      "each message N times the one before" },
    { 'i', "stepbytes", "SIZE", NULL, OPTION_SIZE, AT(step_bytes), 1, READ_BIG,
      "instead of -f: each message SIZE bytes longer" },
    { 'n', "iters", "N", "20", OPTION_NUMBER, AT(iters), 1, 10000000,
      "timed iterations" },
    { 'w', "warmup", "N", "3", OPTION_NUMBER, AT(warmup), 0, 10000000,
      "iterations before them" },
    { 0, "min-time", "TIME", NULL, OPTION_TIME, AT(min_time_ns), 0, READ_BIG,
      "go on until a row has run this long: 500ms, 2s" },
    { 'c', "check", "N", "1", OPTION_NUMBER, AT(check), 0, 10000000,
      "check every N-th result, all elements; 0 none" },
    { 'd', "datatype", "TYPE", "f32", OPTION_DTYPE, AT(dtype), 0, 0,
      "f64 f32 f16 bf16 i8 u8 ..., or all" },
    { 'o', "op", "OP", "sum", OPTION_REDOP, AT(redop), 0, 0,
      "sum avg prod min max band bor bxor, or all" },
    { 'r', "root", "N", "0", OPTION_NUMBER, AT(root), 0, INT32_MAX,
      "root of those that have one, a mesh position" },
    { 'R', "registered", "0|1", "1", OPTION_NUMBER, AT(registered), 0, 1,
      "buffers: 1 from dtensor_alloc, 0 from malloc" },
    { 'C', "cluster", "FILE", NULL, OPTION_TEXT, AT(cluster), 0, 0,
      "cluster file; else the one DTN_CLUSTER names" },
    { 'm', "mesh", "NAME|NxM", NULL, OPTION_TEXT, AT(mesh), 0, 0,
      "mesh of the file, or of that shape; MIN:MAX is -b -e" },
    { 'D', "dim", "NAME", NULL, OPTION_TEXT, AT(dim), 0, 0,
      "only along these dimensions of it, all slices at once" },
    { 0, "local", "N", NULL, OPTION_NUMBER, AT(local), 1, 1024,
      "start N ranks on this host" },
    { 0, "shape", "NxM", NULL, OPTION_TEXT, AT(shape), 0, 0,
      "redistribute: global shape; else squares of -b to -e" },
    { 0, "from", "P", NULL, OPTION_TEXT, AT(from), 0, 0,
      "redistribute: placements before, such as \"S(0),R\"" },
    { 0, "to", "P", NULL, OPTION_TEXT, AT(to), 0, 0,
      "redistribute: placements after" },
    { 0, "nonblocking", NULL, NULL, OPTION_FLAG, AT(nonblocking), 0, 1,
      "collectives: start each call, then wait for it" },
    { 0, "persistent", NULL, NULL, OPTION_FLAG, AT(persistent), 0, 1,
      "collectives: made ready once, then started each time" },
    { 0, "repro", NULL, NULL, OPTION_FLAG, AT(repro), 0, 1,
      "each reduction again with the same bits everywhere" },
    { 0, "draw", NULL, NULL, OPTION_FLAG, AT(draw), 0, 1,
      "draw schedules, and who holds what before and after" },
    { 0, "dry-run", NULL, NULL, OPTION_FLAG, AT(dry_run), 0, 1,
      "list rows and predicted times, start nothing" },
    { 0, "json", "FILE", NULL, OPTION_TEXT, AT(json), 0, 0,
      "write all results and facts there; - for stdout" },
    { 0, "svg", "FILE", NULL, OPTION_TEXT, AT(svg), 0, 0,
      "draw busbw over size there, with its bound" },
    { 0, "baseline", "FILE", NULL, OPTION_TEXT, AT(baseline), 0, 0,
      "compare with what --json wrote; exit 1 if below" },
    { 0, "tolerance", "N%", "10%", OPTION_PERCENT, AT(tolerance), 0, 100,
      "how far below is not yet below" },
    { 0, "csv", "FILE", NULL, OPTION_TEXT, AT(csv), 0, 0,
      "write all results there; - for stdout" },
    { 0, "loop", "N", NULL, OPTION_NUMBER, AT(loop), 10, READ_BIG,
      "soak: N calls of each case, then growth of memory" },
    { 0, "startup", NULL, NULL, OPTION_FLAG, AT(startup), 0, 1,
      "print the time from launch to a first allreduce" },
    { 0, "check-fabric", NULL, NULL, OPTION_FLAG, AT(check_fabric), 0, 1,
      "latency and bandwidth of every two ranks, and outliers" },
    { 0, "calibrate", NULL, NULL, OPTION_FLAG, AT(calibrate), 0, 1,
      "print a [tuning] section of what calls cost here" },
    { 'q', "quiet", NULL, NULL, OPTION_FLAG, AT(quiet), 0, 1,
      "result lines only, no # lines" },
    { 'h', "help", NULL, NULL, OPTION_FLAG, AT(help), 0, 1,
      "print this" },
    { 'V', "version", NULL, NULL, OPTION_FLAG, AT(version), 0, 1,
      "print version, build and licence" },
};

#define NOPTIONS BENCH_COUNT(option_rows)

/* ------------------------------------------------------------- values --- */

/* False: *err says why if it was a word. */
static bool option_value(const struct option_row *row, const char *text,
                         int64_t *valuep, struct dtensor_error *err)
{
    switch (row->kind) {
    case OPTION_TEXT:
        return false;             /* an empty one                             */
    case OPTION_DTYPE:
        return read_dtype(text, valuep, err);
    case OPTION_REDOP:
        return read_redop(text, valuep, err);
    case OPTION_SIZE:
        return read_number(text, READ_SIZE, valuep);
    case OPTION_TIME:
        return read_number(text, READ_TIME, valuep);
    case OPTION_PERCENT:
        return read_number(text, READ_PERCENT, valuep);
    default:
        return read_number(text, READ_COUNT, valuep);
    }
}

static bool option_is_word(const struct option_row *row)
{
    return row->kind == OPTION_DTYPE || row->kind == OPTION_REDOP;
}

/* -m MIN:MAX, as OSU has it: the sizes, no mesh. */
static bool option_range(const char *text, struct bench_options *opt)
{
    const char *colon = strchr(text, ':');
    char low[32];
    int64_t min, max;

    if (!colon || colon - text >= (int)sizeof low)
        return false;
    snprintf(low, sizeof low, "%.*s", (int)(colon - text), text);
    if (!read_number(low, READ_SIZE, &min) || min < 1 ||
        !read_number(colon + 1, READ_SIZE, &max))
        return false;
    opt->min_bytes = min;
    opt->max_bytes = max;
    return true;
}

/* Set the field of `row` from the text after it. */
static bool option_set(const struct option_row *row, const char *text,
                       struct bench_options *opt, char *why, size_t why_size)
{
    void *field = (char *)opt + row->at;
    struct dtensor_error err;
    int64_t value = 1;

    if (row->kind == OPTION_TEXT && *text) {
        if (row->letter != 'm' || !option_range(text, opt))
            *(const char **)field = text;
        return true;
    }
    if (row->kind != OPTION_FLAG) {
        if (!option_value(row, text, &value, &err)) {
            if (option_is_word(row))
                snprintf(why, why_size, "--%s: %s", row->name, err.text);
            else
                snprintf(why, why_size, "--%s \"%s\": expected %s (%s)",
                         row->name, text, row->arg, row->help);
            return false;
        }
        if (!option_is_word(row) && (value < row->min || value > row->max)) {
            snprintf(why, why_size, "--%s %s: out of range %lld to %lld",
                     row->name, text, (long long)row->min,
                     (long long)row->max);
            return false;
        }
    }
    *(int64_t *)field = value;
    return true;
}

/* ------------------------------------------------------ command line --- */

/* A word of nccl-tests or OSU, a letter, or a name and the nearest one. */
static void option_unknown(const struct cli *cli, const char *word, char *why,
                           size_t why_size)
{
    const char *theirs = alias_option(word);

    if (theirs)
        snprintf(why, why_size, "%s: no such option; %s", word, theirs);
    else
        cli_advise(cli, word, why, why_size);
}

static bool option_read(struct bench_options *opt, int argc, char *argv[],
                        char *why, size_t why_size)
{
    struct cli cli = { .n = 0 };
    char letter[3];
    int row;

    for (size_t i = 0; i < NOPTIONS; i++)
        cli_add(&cli, option_rows[i].name, option_rows[i].letter,
                option_rows[i].arg != NULL);
    while ((row = cli_next(&cli, argc, argv)) >= 0) {
        if (!option_set(&option_rows[row], optarg, opt, why, why_size))
            return false;
        opt->given |= UINT64_C(1) << row;
    }
    if (row == CLI_MISSING)
        snprintf(why, why_size, "%s: needs an argument", argv[optind - 1]);
    if (row == CLI_UNKNOWN)
        option_unknown(&cli, cli_word(&cli, argv, letter), why, why_size);
    return row == CLI_END;
}

static void option_defaults(struct bench_options *opt)
{
    memset(opt, 0, sizeof *opt);
    for (size_t i = 0; i < NOPTIONS; i++)
        if (option_rows[i].initial)
            option_set(&option_rows[i], option_rows[i].initial, opt, NULL, 0);
}

/* -------------------------------------------------------------- tests --- */

static bool option_add_test(struct bench_options *opt, const char *name,
                            char *why, size_t why_size)
{
    const struct bench_test *test = test_find(alias_test(name));
    bool all = strcmp(name, "all") == 0;
    const char *known[BENCH_MAX_TESTS + 1] = { NULL };
    char advice[300];

    for (int i = 0; i < bench_ntests; i++)
        known[i] = bench_tests[i].name;
    known[bench_ntests] = "all";
    if (!test && !all) {
        snprintf(why, why_size, "no test \"%s\"; %s", name,
                 dtensor_advise(name, known, NULL, advice, sizeof advice));
        return false;
    }
    if (opt->ntests + (all ? bench_ntests : 1) > BENCH_MAX_TESTS) {
        snprintf(why, why_size, "more than %d tests", BENCH_MAX_TESTS);
        return false;
    }
    for (int i = 0; all && i < bench_ntests; i++)      /* those that can be   */
        if (bench_tests[i].coll != DTENSOR_NCOLLECTIVES
            || (!opt->nonblocking && !opt->persistent))
            opt->test[opt->ntests++] = &bench_tests[i];
    if (test)
        opt->test[opt->ntests++] = test;
    return true;
}

/* ------------------------------------------------------ the whole line --- */

/* `all` of either stands for those that fit the other. */
static bool option_op_fits(const struct bench_options *opt)
{
    return opt->dtype == DTENSOR_NDTYPES || opt->redop == DTENSOR_NREDOPS ||
           value_op_fits((enum dtensor_dtype)opt->dtype,
                         (enum dtensor_redop)opt->redop);
}

/* The first of the tests that is no collective, which can be started: or NULL.
 */
static const struct bench_test *option_other(const struct bench_options *opt)
{
    for (int t = 0; t < opt->ntests; t++)
        if (opt->test[t]->coll == DTENSOR_NCOLLECTIVES)
            return opt->test[t];
    return NULL;
}

static bool option_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static bool option_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static bool option_given(const struct bench_options *opt, const char *name)
{
    for (size_t i = 0; i < NOPTIONS; i++)
        if (strcmp(option_rows[i].name, name) == 0)
            return opt->given >> i & 1;
    return false;
}

/* Options that have a default would do nothing beside others. */
static bool option_check_given(const struct bench_options *opt, char *why,
                               size_t why_size)
{
    if (opt->step_bytes && option_given(opt, "stepfactor"))
        snprintf(why, why_size, "-f and -i are two ways to step: choose one");
    else if (!opt->baseline && option_given(opt, "tolerance"))
        snprintf(why, why_size, "--tolerance goes with --baseline");
    else
        return true;
    return false;
}

/* What no single option can know: do they fit each other? */
static bool option_check(const struct bench_options *opt, char *why,
                         size_t why_size)
{
    int64_t shape[DTENSOR_MAX_DIMS];

    if (opt->ntests == 0 && !opt->startup && !opt->check_fabric
        && !opt->calibrate)
        snprintf(why, why_size, "which test?");
    else if (opt->calibrate && (opt->ntests || opt->check_fabric))
        snprintf(why, why_size, "--calibrate goes alone: what it prints is a "
                 "section of a cluster file");
    else if (opt->min_bytes > opt->max_bytes)
        snprintf(why, why_size, "-b %lld is more than -e %lld",
                 (long long)opt->min_bytes, (long long)opt->max_bytes);
    else if (opt->shape && !read_shape(opt->shape, shape))
        snprintf(why, why_size, "--shape \"%s\": expected 1 to %d numbers "
                 "such as 4096x4096", opt->shape, DTENSOR_MAX_DIMS);
    else if (opt->nonblocking && opt->persistent)
        snprintf(why, why_size, "--nonblocking and --persistent are two ways "
                 "to make a call: choose one");
    else if ((opt->nonblocking || opt->persistent) && option_other(opt))
        snprintf(why, why_size, "%s knows no --%s, which collectives do",
                 option_other(opt)->name,
                 opt->persistent ? "persistent" : "nonblocking");
    else if (!opt->from != !opt->to)
        snprintf(why, why_size, "--from and --to go together");
    else if (!option_op_fits(opt))
        snprintf(why, why_size, "%s has no %s (-o)",
                 dtensor_dtype_name((enum dtensor_dtype)opt->dtype),
                 dtensor_redop_name((enum dtensor_redop)opt->redop));
    else if (option_stdout(opt->json) + option_stdout(opt->csv)
             + option_stdout(opt->svg) > 1)
        snprintf(why, why_size, "--json -, --csv -, --svg -: only one can have "
                 "the standard output");
    else if (option_same(opt->json, opt->csv)
             || option_same(opt->json, opt->svg)
             || option_same(opt->csv, opt->svg))
        snprintf(why, why_size, "--json, --csv, --svg: each needs a file of "
                 "its own");
    else if (opt->dry_run && (opt->startup || opt->check_fabric ||
                              opt->calibrate || opt->baseline))
        snprintf(why, why_size, "--dry-run lists tests; it measures nothing");
    else if ((opt->json || opt->baseline) && !report_has_json())
        snprintf(why, why_size, "--%s: this dtensor-bench was built "
                 "without libjansson (--csv works)",
                 opt->json ? "json" : "baseline");
    else
        return option_check_given(opt, why, why_size);
    return false;
}

bool options_parse(struct bench_options *opt, int argc, char *argv[],
                   char *why, size_t why_size)
{
    option_defaults(opt);
    if (!option_read(opt, argc, argv, why, why_size))
        return false;
    for (int i = optind; i < argc; i++)
        if (!option_add_test(opt, argv[i], why, why_size))
            return false;
    return opt->help || opt->version || option_check(opt, why, why_size);
}

/* --------------------------------------------------------------- words --- */

void options_help(FILE *stream)
{
    char left[40];

    fputs("Usage: dtensor-bench [OPTION]... TEST...\n"
          "Time collectives and redistributions, and check every result.\n\n"
          "TEST, or all:", stream);
    for (int i = 0; i < bench_ntests; i++)
        fprintf(stream, "%s%s", i % 4 ? " " : "\n  ", bench_tests[i].name);
    fputs("\n\n", stream);
    for (size_t i = 0; i < NOPTIONS; i++) {
        const struct option_row *row = &option_rows[i];

        snprintf(left, sizeof left, row->letter ? "-%c, --%s%s%s"
                 : "%c   --%s%s%s", row->letter ? row->letter : ' ',
                 row->name, row->arg ? " " : "", row->arg ? row->arg : "");
        fprintf(stream, "  %-22s %s%s%s%s\n", left, row->help,
                row->initial ? " (" : "", row->initial ? row->initial : "",
                row->initial ? ")" : "");
    }
    fprintf(stream, "\nRandom numbers and operators have command lines of their own:\n"
            "dtensor-bench rng --help, dtensor-bench op --help\n\nExit status: 0 fine, 1 wrong result or below baseline, 2 usage or "
            "cluster file,\n3 a peer, a deadline or memory was lost, 141 nobody reads stdout.\n"
            "Examples:\n"
            "  dtensor-bench --local 4 allreduce -b 8 -e 1M\n"
            "  srun dtensor-bench -C cluster.ini -m world all --json x.json\n");
}

static const char *option_word(const struct option_row *row, int64_t value)
{
    const char *word = row->kind == OPTION_DTYPE
        ? dtensor_dtype_name((enum dtensor_dtype)value)
        : dtensor_redop_name((enum dtensor_redop)value);
    int64_t all = row->kind == OPTION_DTYPE ? (int64_t)DTENSOR_NDTYPES
                                            : (int64_t)DTENSOR_NREDOPS;

    return value == all ? "all" : word;
}

/* Does it shape the numbers?  Letters with a default, flags without one. */
static bool option_shapes(const struct option_row *row)
{
    return row->kind == OPTION_FLAG ? !row->letter
                                    : row->letter && row->initial;
}

void options_format(const struct bench_options *opt, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < NOPTIONS && used < size; i++) {
        const struct option_row *row = &option_rows[i];
        int64_t value;

        if (!option_shapes(row))
            continue;
        value = *(const int64_t *)((const char *)opt + row->at);
        if (row->kind == OPTION_FLAG)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     value ? " --" : "",
                                     value ? row->name : "");
        else if (option_is_word(row))
            used += (size_t)snprintf(text + used, size - used, "%s-%c %s",
                                     used ? " " : "", row->letter,
                                     option_word(row, value));
        else
            used += (size_t)snprintf(text + used, size - used, "%s-%c %lld",
                                     used ? " " : "", row->letter,
                                     (long long)value);
    }
}
