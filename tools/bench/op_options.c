/* op_options.c - the command line of dtensor-bench op */
#include "tools/bench/bench.h"
#include "tools/bench/op.h"
#include "tools/bench/options.h"
#include "tools/bench/read.h"
#include "tools/bench/report.h"
#include "dtensor.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum op_option {
    OP_SHAPE, OP_DTYPE, OP_RANKS, OP_FIRST, OP_OTHERS, OP_ITERS, OP_REPRO,
    OP_JSON, OP_HELP, OP_NOPTIONS
};

static const struct {
    const char *name, *arg, *help;
} op_rows[OP_NOPTIONS] = {
    [OP_SHAPE] = { "shape", "NxM", "rows and columns (1024x1024)" },
    [OP_DTYPE] = { "dtype", "T", "type of floats (f32)" },
    [OP_RANKS] = { "ranks", "N", "ranks to start, 1 to 1024 (1)" },
    [OP_FIRST] = { "first", "P", "how the first input lies (S(0))" },
    [OP_OTHERS] = { "others", "P", "how other matrices lie (S(0))" },
    [OP_ITERS] = { "iters", "N", "times that each is measured (30)" },
    [OP_REPRO] = { "repro", NULL, "products with the same bits everywhere" },
    [OP_JSON] = { "json", "FILE", "all results as JSON; - is stdout" },
    [OP_HELP] = { "help", NULL, "print this" },
};

static bool op_number(const char *text, int64_t min, int64_t max,
                      int64_t *valuep)
{
    char *rest;
    long long value;

    errno = 0;
    value = strtoll(text, &rest, 0);
    if (errno || rest == text || *rest || value < min || value > max)
        return false;
    *valuep = value;
    return true;
}

static bool op_set(enum op_option which, const char *text,
                   struct op_options *opt)
{
    switch (which) {
    case OP_SHAPE:
        opt->ndim = read_shape(text, opt->shape);
        return opt->ndim == 2;
    case OP_DTYPE:
        return dtensor_dtype_parse(text, &opt->dtype, NULL) == 0;
    case OP_RANKS:    return op_number(text, 1, 1024, &opt->ranks);
    case OP_ITERS:    return op_number(text, 1, 1000000, &opt->iters);
    case OP_FIRST:    opt->first = text; return true;
    case OP_OTHERS:   opt->others = text; return true;
    case OP_JSON:     opt->json = text; return report_has_json();
    case OP_REPRO:    opt->repro = true; return true;
    case OP_HELP:     opt->help = true; return true;
    case OP_NOPTIONS: break;
    }
    return false;
}

/* All cases, or those that are named. */
static bool op_names(struct op_options *opt, int n, char *names[],
                     char *why, size_t why_size)
{
    opt->ncases = n > 0 ? n : op_ncases;
    opt->cases = calloc((size_t)opt->ncases, sizeof opt->cases[0]);
    for (int i = 0; opt->cases && i < opt->ncases; i++) {
        int k = 0;

        while (n > 0 && k < op_ncases && strcmp(op_cases[k].name, names[i]))
            k++;
        if (k == op_ncases) {
            snprintf(why, why_size, "%s: no such case of op (--help lists "
                     "them)", names[i]);
            return false;
        }
        opt->cases[i] = &op_cases[n > 0 ? k : i];
    }
    if (!opt->cases)
        snprintf(why, why_size, "out of memory");
    return opt->cases != NULL;
}

static void op_refuse(enum op_option which, const char *text, char *why,
                      size_t why_size)
{
    if (which == OP_JSON)
        snprintf(why, why_size, "--json: built without libjansson");
    else
        snprintf(why, why_size, "--%s \"%s\": expected %s, %s",
                 op_rows[which].name, text, op_rows[which].arg,
                 op_rows[which].help);
}

bool op_options_parse(struct op_options *opt, int argc, char *argv[],
                      char *why, size_t why_size)
{
    struct option longs[OP_NOPTIONS + 1] = { { 0 } };
    int which;

    *opt = (struct op_options){
        .ndim = 2, .shape = { 1024, 1024 }, .dtype = DTENSOR_F32, .ranks = 1,
        .iters = 30, .first = "S(0)", .others = "S(0)"
    };
    for (int i = 0; i < OP_NOPTIONS; i++)
        longs[i] = (struct option){
            op_rows[i].name, op_rows[i].arg ? required_argument : no_argument,
            NULL, 1000 + i
        };
    opterr = 0;
    while ((which = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (which < 1000) {
            snprintf(why, why_size, "%s: %s", argv[optind - 1], which == ':' ?
                     "needs an argument" : "no such option of op");
            return false;
        }
        if (!op_set((enum op_option)(which - 1000), optarg, opt)) {
            op_refuse((enum op_option)(which - 1000), optarg, why, why_size);
            return false;
        }
    }
    return opt->help ||
           op_names(opt, argc - optind, argv + optind, why, why_size);
}

void op_options_help(FILE *stream)
{
    char left[40];
    int column = 0;

    fputs("Usage: dtensor-bench op [OPTION]... [CASE]...\n"
          "Measure operators: deciding, calling, and the arithmetic of a rank."
          "\n\n", stream);
    for (int i = 0; i < OP_NOPTIONS; i++) {
        snprintf(left, sizeof left, "--%s%s%s", op_rows[i].name,
                 op_rows[i].arg ? " " : "",
                 op_rows[i].arg ? op_rows[i].arg : "");
        fprintf(stream, "  %-20s %s\n", left, op_rows[i].help);
    }
    fputs("\nCases, all by default:", stream);
    for (int i = 0; i < op_ncases; i++) {
        column = column == 0 || column > 60 ? 0 : column;
        column += fprintf(stream, "%s%s", column == 0 ? "\n  " : " ",
                          op_cases[i].name);
    }
    fputs("\n", stream);
}
