/* op_options.c - the command line of dtensor-bench op */
#include "tools/bench/bench.h"
#include "tools/bench/mode.h"
#include "tools/bench/op.h"
#include "tools/bench/options.h"
#include "tools/bench/read.h"
#include "tools/bench/report.h"
#include "dtensor.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum op_option {
    OP_SHAPE, OP_DTYPE, OP_RANKS, OP_FIRST, OP_OTHERS, OP_ITERS, OP_REPRO,
    OP_PRODUCTS, OP_JSON, OP_HELP, OP_NOPTIONS
};

static const struct mode_row op_rows[OP_NOPTIONS] = {
    [OP_SHAPE] = { "shape", "NxM", "rows and columns (1024x1024)" },
    [OP_DTYPE] = { "dtype", "T", "type of floats (f32)" },
    [OP_RANKS] = { "ranks", "N", "ranks to start, 1 to 1024 (1)" },
    [OP_FIRST] = { "first", "P", "placement of the first input (S(0))" },
    [OP_OTHERS] = { "others", "P", "that of the other matrices (S(0))" },
    [OP_ITERS] = { "iters", "N", "times that each is measured (30)" },
    [OP_REPRO] = { "repro", NULL, "products with the same bits everywhere" },
    [OP_PRODUCTS] = { "products", NULL, "only products, of many shapes" },
    [OP_JSON] = { "json", "FILE", "all results as JSON; - is stdout" },
    [OP_HELP] = { "help", NULL, "print this" },
};

static bool op_set(int which, const char *text, void *options, char *why,
                   size_t why_size)
{
    struct op_options *opt = options;

    switch ((enum op_option)which) {
    case OP_SHAPE:
        opt->ndim = read_shape(text, opt->shape);
        return opt->ndim == 2;
    case OP_DTYPE:
        return dtensor_dtype_parse(text, &opt->dtype, NULL) == 0;
    case OP_RANKS:    return mode_number(text, 1, 1024, &opt->ranks);
    case OP_ITERS:    return mode_number(text, 1, 1000000, &opt->iters);
    case OP_FIRST:    opt->first = text; return true;
    case OP_OTHERS:   opt->others = text; return true;
    case OP_JSON:
        opt->json = text;
        snprintf(why, why_size, "--json: built without libjansson");
        return report_has_json();
    case OP_REPRO:    opt->repro = true; return true;
    case OP_PRODUCTS: opt->products = true; return true;
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

/* The BLAS has loops for two types, and one rank. */
static bool op_products_fit(const struct op_options *opt, char *why,
                            size_t why_size)
{
    const bool fit = !opt->products || opt->help ||
                     ((opt->dtype == DTENSOR_F32 ||
                       opt->dtype == DTENSOR_F64) && opt->ranks == 1 &&
                      !opt->json);

    if (!fit)
        snprintf(why, why_size, "--products: f32 or f64 on one rank, without "
                 "--json");
    return fit;
}

static const struct mode op_mode = { "op", op_rows, OP_NOPTIONS, op_set };

bool op_options_parse(struct op_options *opt, int argc, char *argv[],
                      char *why, size_t why_size)
{
    *opt = (struct op_options){
        .ndim = 2, .shape = { 1024, 1024 }, .dtype = DTENSOR_F32, .ranks = 1,
        .iters = 30, .first = "S(0)", .others = "S(0)"
    };
    return mode_parse(&op_mode, argc, argv, opt, why, why_size) &&
           (opt->help ||
            op_names(opt, argc - optind, argv + optind, why, why_size)) &&
           op_products_fit(opt, why, why_size);
}

void op_options_help(FILE *stream)
{
    int column = 0;

    fputs("Usage: dtensor-bench op [OPTION]... [CASE]...\n"
          "Measure operators: deciding, calling, and the arithmetic of a rank."
          "\n\n", stream);
    mode_help(&op_mode, stream);
    fputs("\nCases, all by default:", stream);
    for (int i = 0; i < op_ncases; i++) {
        column = column == 0 || column > 60 ? 0 : column;
        column += fprintf(stream, "%s%s", column == 0 ? "\n  " : " ",
                          op_cases[i].name);
    }
    fputs("\n", stream);
}
