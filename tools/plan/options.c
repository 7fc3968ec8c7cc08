/* options.c - the command line of dtensor-plan
 *
 * One table says name, letter, argument, place and meaning of each option:
 * the command line is read by it (tools/cli.c), and --help printed.
 */
#include "config.h"
#include "tools/cli.h"
#include "tools/plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

const char plan_program[] = "dtensor-plan";

/* What the command line is about, and what an option goes with. */
enum { A_TENSOR = 1, A_COLLECTIVE = 2, AN_OP = 4, A_MODULE = 8, WINNERS = 16,
       PLAYED = A_TENSOR | A_COLLECTIVE, ALL = 31, NSUBJECTS = 5 };

struct plan_row {
    const char *name;
    char letter;
    const char *argument;         /* NULL: a flag                             */
    size_t at;                    /* in struct plan_options                   */
    unsigned with;                /* what it goes with                        */
    const char *help;
};

#define AT(field) offsetof(struct plan_options, field)

static const struct plan_row plan_rows[] = {
    { "mesh", 'm', "NxM|NAME", AT(mesh), ALL & ~WINNERS,
      "mesh of that shape, or of the cluster file" },
    { "from", 'f', "P", AT(from), A_TENSOR | A_MODULE,
      "placements before, such as \"S(0),R\"" },
    { "to", 't', "P", AT(to), A_TENSOR,
      "placements after; none: only --layout" },
    { "shape", 's', "NxM", AT(shape), A_TENSOR | AN_OP | A_MODULE,
      "global shape of the tensor" },
    { "size", 'z', "SIZE", AT(size), A_COLLECTIVE,
      "of a collective: bytes of its largest buffer" },
    { "winners", 'W', "RANKS,...", AT(winners), A_COLLECTIVE | WINNERS,
      "of a collective: the fastest by bytes and ranks" },
    { "args", 'a', "A=B,...", AT(args), AN_OP,
      "of an operator: dim, keep, shape, count ..." },
    { "dtype", 'd', "TYPE", AT(dtype), ALL,
      "f32 (the default) f64 f16 bf16 i8 u8 ..." },
    { "to-mesh", 'u', "NxM@R|NAME", AT(to_mesh), A_TENSOR,
      "another mesh for --to; sizes begin with rank R" },
    { "names", 'n', "A,B", AT(names), A_TENSOR,
      "names of the mesh dimensions" },
    { "cluster", 'C', "FILE", AT(cluster), ALL,
      "cluster file: hosts, transports, meshes, costs" },
    { "per-host", 'H', "N", AT(per_host), ALL & ~A_MODULE,
      "without a file: ranks on a host (default all)" },
    { "route", 'r', "ROUTE", AT(route), A_TENSOR,
      "direct, merged, min-cost, greedy, or auto" },
    { "max-scratch", 'x', "SIZE", AT(max_scratch), A_TENSOR,
      "bound of results between steps; K M G T" },
    { "matrix", 'M', NULL, AT(matrix), A_TENSOR,
      "bytes of each pair of more than 8 ranks too" },
    { "layout", 'l', NULL, AT(layout), A_TENSOR,
      "what every rank holds, before and after" },
    { "constant", 'k', NULL, AT(constant), A_MODULE,
      "of a model: its input needs no gradient" },
    { "json", 'j', NULL, AT(json), ALL & ~WINNERS, "for programs" },
    { "draw", 'D', NULL, AT(draw), PLAYED,
      "a picture: mesh, tensor, redistribute, schedule" },
    { "svg", 'g', NULL, AT(svg), PLAYED, "the same as SVG" },
    { "algorithm", 'A', "NAME", AT(algorithm), A_COLLECTIVE,
      "of a collective: this one, not the one taken" },
    { "simulate", 'S', NULL, AT(simulate), PLAYED,
      "play a collective or redistribute on these links:" },
    { "topology", 'T', "KIND:SIZES", AT(topology), PLAYED,
      "links: flat, fat-tree:32/16x64, dragonfly:8x16x33" },
    { "noise", 'N', "LENGTH/EVERY", AT(noise), PLAYED,
      "interruptions of CPUs, means in ns; or file:PATH" },
    { "slow", 'w', "RANK:FACTOR", AT(slow), PLAYED,
      "ranks whose CPUs take longer" },
    { "failed", 'F', "KIND:NUMBER", AT(failed), PLAYED,
      "links that are down, such as up1:3" },
    { "beside", 'b', "CALL ...", AT(beside), PLAYED,
      "what runs at the same time, such as broadcast:1M" },
    { "trace", 'o', "FILE", AT(trace), PLAYED,
      "events of the simulation, for Perfetto" },
    { "help", 'h', NULL, AT(help), ALL, "print this, and exit" },
    { "version", 'V', NULL, AT(version), ALL,
      "print version, build and licence, and exit" },
};

#define NROWS PLAN_COUNT(plan_rows)

const char *const plan_collectives[DTENSOR_NCOLLECTIVES + 1] = {
    [DTENSOR_ALLREDUCE] = "allreduce", [DTENSOR_REDUCE] = "reduce",
    [DTENSOR_BROADCAST] = "broadcast", [DTENSOR_ALLGATHER] = "allgather",
    [DTENSOR_REDUCE_SCATTER] = "reduce_scatter",
    [DTENSOR_ALL_TO_ALL] = "all_to_all", [DTENSOR_GATHER] = "gather",
    [DTENSOR_SCATTER] = "scatter", [DTENSOR_BARRIER] = "barrier"
};

int plan_collective(const char *name)
{
    for (int c = 0; c < DTENSOR_NCOLLECTIVES; c++)
        if (strcmp(plan_collectives[c], name) == 0)
            return c;
    return -1;
}

bool plan_has_json(void)
{
#ifdef HAVE_JANSSON
    return true;
#else
    return false;
#endif
}

int plan_usage(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s: ", plan_program);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry '%s --help' for more information.\n", plan_program);
    return PLAN_BAD;
}

void plan_help(FILE *stream)
{
    char left[40];

    fprintf(stream, "Usage: %s --mesh NxM --shape NxM --from P --to P "
            "[OPTION]...\n       %s COLLECTIVE --mesh NxM --size SIZE "
            "[OPTION]...\n       %s op NAME P... --mesh NxM --shape NxM,NxM "
            "[OPTION]...\n       %s module PLAN PATH=KIND... --cluster FILE "
            "--shape NxM\n                    [OPTION]...\n"
            "Explain how a tensor gets from one placement to "
            "another, what a collective\nwould cost, which placements an "
            "operator takes, or what the modules of a plan\nmove; no peers "
            "are needed.\n\n", plan_program, plan_program, plan_program,
            plan_program);
    for (size_t i = 0; i < NROWS; i++) {
        const struct plan_row *row = &plan_rows[i];

        snprintf(left, sizeof left, "-%c, --%s%s%s", row->letter, row->name,
                 row->argument ? " " : "", row->argument ? row->argument : "");
        fprintf(stream, "  %-26s %s\n", left, row->help);
    }
    fprintf(stream, "\nExample: %s --mesh 2x4 --from 'S(0),R' --to 'R,S(1)' "
            "--shape 8192x8192\nExit status: 0, or 2 when something is wrong "
            "with the request.\n", plan_program);
}

/* Store an option where its row says. */
static void options_set(struct plan_options *opt, const struct plan_row *row,
                        const char *value)
{
    void *at = (char *)opt + row->at;
    const bool on = true;

    if (row->argument)
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &on, sizeof on);
}

/* Those that [tuning] names: often typed for the collective. */
static const char *const plan_algorithms[] = {
    "direct", "ring", "tree", "twotree", "doubling", "halving", "hierarchical",
    "pairwise", "bruck", "spread"
};

static unsigned options_subject(const struct plan_options *opt)
{
    return opt->op ? AN_OP : opt->module ? A_MODULE
         : !opt->collective ? A_TENSOR
         : opt->winners ? WINNERS : A_COLLECTIVE;
}

/* An option that acts on nothing here is refused. */
static int options_check_with(const struct plan_options *opt)
{
    static const char *const words[NSUBJECTS] = {
        "a tensor", "a collective", "op", "module", "a table of winners"
    };
    const unsigned subject = options_subject(opt);
    char with[100] = "";
    size_t used = 0;
    int here = 0;

    while (subject >> here > 1)
        here++;
    for (size_t i = 0; i < NROWS; i++) {
        if (!(opt->given >> i & 1) || plan_rows[i].with & subject)
            continue;
        for (int k = 0; k < NSUBJECTS; k++)
            if (plan_rows[i].with >> k & 1)
                used += (size_t)snprintf(with + used, sizeof with - used,
                                         "%s%s", used ? " or " : "", words[k]);
        return plan_usage("--%s goes with %s, not with %s", plan_rows[i].name,
                          with, words[here]);
    }
    return PLAN_GOOD;
}

static int options_check_collective(const struct plan_options *opt)
{
    char advice[200];

    for (size_t i = 0; i < PLAN_COUNT(plan_algorithms); i++)
        if (strcmp(opt->collective, plan_algorithms[i]) == 0)
            return plan_usage("%s is an algorithm; did you mean allreduce "
                              "--algorithm %s?", opt->collective,
                              opt->collective);
    if (plan_collective(opt->collective) < 0)
        return plan_usage("no collective \"%s\"; %s", opt->collective,
                          dtensor_advise(opt->collective, plan_collectives,
                                         NULL, advice, sizeof advice));
    if (!opt->size && !opt->winners && strcmp(opt->collective, "barrier") != 0)
        return plan_usage("--size is missing");
    if (opt->algorithm && !opt->draw && !opt->svg && !opt->simulate)
        return plan_usage("--algorithm needs --draw, --svg or --simulate, "
                          "which show it");
    return PLAN_GOOD;
}

static int options_check_module(const struct plan_options *opt)
{
    if (opt->ninputs < 1)
        return plan_usage("module: expected the name of a plan and the "
                          "modules, such as up=linear:1024x4096");
    if (!opt->cluster)
        return plan_usage("--cluster is missing");
    if (!opt->shape)
        return plan_usage("--shape is missing");
    return PLAN_GOOD;
}

static int options_check_op(const struct plan_options *opt)
{
    if (opt->ninputs < 1)
        return plan_usage("op: expected the name of an operator and the "
                          "placements of its inputs");
    if (!opt->shape)
        return plan_usage("--shape is missing");
    return PLAN_GOOD;
}

/* A redistribute, a tensor, or a mesh that is only drawn. */
static int options_check_tensor(const struct plan_options *opt)
{
    const bool picture = opt->svg || opt->draw;

    if (!picture || opt->from || opt->to || opt->shape) {
        if (!opt->shape)
            return plan_usage("--shape is missing");
        if (!opt->from)
            return plan_usage("--from is missing");
    }
    if (!opt->to && !opt->layout && !picture)
        return plan_usage("--to is missing");
    if (!opt->to &&
        (opt->max_scratch || opt->matrix || plan_simulates_one(opt)))
        return plan_usage("--%s needs --to", opt->max_scratch ? "max-scratch"
                          : opt->matrix ? "matrix" : "route");
    if (!opt->to && opt->to_mesh)
        return plan_usage("--to-mesh needs --to");
    if (picture && (opt->layout || opt->matrix))
        return plan_usage("--%s and --%s do not go together",
                          opt->layout ? "layout" : "matrix",
                          opt->svg ? "svg" : "draw");
    return PLAN_GOOD;
}

/* Options of a simulation without one. */
static int options_check_simulate(const struct plan_options *opt)
{
    if (opt->simulate && !opt->collective && (opt->layout || !opt->to))
        return plan_usage("--simulate goes with a collective, such as "
                          "allreduce, or a redistribute, --from and --to");
    if (opt->simulate && (opt->draw || opt->svg))
        return plan_usage("--simulate and --%s do not go together",
                          opt->svg ? "svg" : "draw");
    if (!opt->simulate && (opt->topology || opt->noise || opt->slow
                           || opt->failed || opt->beside || opt->trace))
        return plan_usage("--topology, --noise, --slow, --failed, --beside and "
                          "--trace go with --simulate");
    if (opt->trace && !plan_simulates_one(opt))
        return plan_usage("--trace: of which %s?", opt->collective
                          ? "--algorithm" : "--route");
    return PLAN_GOOD;
}

/* What does not go together, whatever the command line is about. */
static int options_check_together(const struct plan_options *opt)
{
    if (opt->json && (opt->svg || opt->draw))
        return plan_usage("--json and --%s do not go together",
                          opt->svg ? "svg" : "draw");
    if (opt->svg && opt->draw)
        return plan_usage("--svg and --draw do not go together");
    if (opt->cluster && opt->per_host)
        return plan_usage("--per-host is what --cluster says");
    if (opt->beside && opt->to_mesh)
        return plan_usage("--beside and --to-mesh do not go together");
    if (opt->json && !plan_has_json())
        return plan_usage("--json: this build is without libjansson");
    return PLAN_GOOD;
}

/* What is missing or does not go together. */
static int options_check(const struct plan_options *opt)
{
    if (opt->help || opt->version)
        return PLAN_GOOD;
    if (options_check_with(opt) || options_check_simulate(opt))
        return PLAN_BAD;
    if (!opt->mesh && !opt->module && !opt->winners)
        return plan_usage("--mesh is missing");
    if (options_check_together(opt))
        return PLAN_BAD;
    return opt->module ? options_check_module(opt)
         : opt->op ? options_check_op(opt)
         : opt->collective ? options_check_collective(opt)
                           : options_check_tensor(opt);
}

static int options_parse(int argc, char **argv, struct plan_options *opt)
{
    struct cli cli = { .n = 0 };
    char advice[200], letter[3];
    int row;

    for (size_t i = 0; i < NROWS; i++)
        cli_add(&cli, plan_rows[i].name, plan_rows[i].letter,
                plan_rows[i].argument != NULL);
    while ((row = cli_next(&cli, argc, argv)) >= 0) {
        options_set(opt, &plan_rows[row], optarg);
        opt->given |= UINT64_C(1) << row;
    }
    if (row == CLI_MISSING)
        return plan_usage("%s: an argument is missing", argv[optind - 1]);
    if (row == CLI_UNKNOWN)
        return plan_usage("%s", cli_advise(&cli, cli_word(&cli, argv, letter),
                                           advice, sizeof advice));
    return PLAN_GOOD;
}

int plan_options_read(int argc, char **argv, struct plan_options *opt)
{
    *opt = (struct plan_options){ .dtype = "f32", .route = "auto" };
    if (options_parse(argc, argv, opt) != PLAN_GOOD)
        return PLAN_BAD;
    if (optind < argc && (strcmp(argv[optind], "op") == 0 ||
                          strcmp(argv[optind], "module") == 0)) {
        const char *name = argc > optind + 1 ? argv[optind + 1] : "";

        if (argv[optind][0] == 'o')
            opt->op = name;
        else
            opt->module = name;
        opt->ninputs = argc - optind - 2;
        opt->inputs = argv + optind + 2;
        return options_check(opt);
    }
    if (optind < argc)
        opt->collective = argv[optind++];
    if (optind < argc)
        return plan_usage("%s: what is it? (options begin with -)",
                          argv[optind]);
    return options_check(opt);
}
