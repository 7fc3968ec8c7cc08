/* op.c - the placements that an operator accepts, their costs, and the choice
 *
 *   $ dtensor-plan op matmul 'S(0),R' 'R,S(1)' --mesh 2x4 --shape 512x64,64x256
 *
 * Each word after the name gives the placements of an input.  --shape and
 * --dtype have one value for each input, separated by commas; the last value
 * also applies to all further inputs.
 */
#include "tools/draw/bytes.h"
#include "tools/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* Entry i of "a,b,c"; the last one if there are fewer.  Returns `word`. */
static const char *op_entry(const char *list, int i, char *word, size_t size)
{
    for (; i > 0 && strchr(list, ','); i--)
        list = strchr(list, ',') + 1;
    snprintf(word, size, "%.*s", (int)strcspn(list, ","), list);
    return word;
}

/* Has a list more entries than there are inputs? */
static int op_list_check(const struct plan_options *opt, const char *option,
                         const char *list)
{
    int n = 1;

    for (const char *at = list; (at = strchr(at, ',')); at++)
        n++;
    return n <= opt->ninputs ? PLAN_GOOD
         : plan_usage("--%s \"%s\" has %d entries, but there are %d inputs "
                      "(give each input its placements)", option, list, n,
                      opt->ninputs);
}

static int op_say(const struct dtensor_error *err)
{
    fprintf(stderr, "%s: %s\n", plan_program, err->text);
    return PLAN_BAD;
}

/* Input i. */
static int op_input(const struct plan_job *job, const struct plan_options *opt,
                    int i, struct dtensor_spec *spec)
{
    struct dtensor_error err;
    char word[200];
    int rc;

    *spec = (struct dtensor_spec){ .mesh = job->mesh };
    spec->ndim = plan_numbers(op_entry(opt->shape, i, word, sizeof word),
                              spec->shape);
    if (spec->ndim < 0)
        return plan_usage("--shape \"%s\": expected up to 8 sizes such as "
                          "512x64 for each input, separated by commas",
                          opt->shape);
    rc = dtensor_dtype_parse(op_entry(opt->dtype, i, word, sizeof word),
                             &spec->dtype, &err);
    if (rc == 0)
        rc = dtensor_placements_parse(job->mesh, opt->inputs[i], spec->ndim,
                                      spec->placement, &err);
    if (rc == 0)
        rc = dtensor_spec_normalize(spec, &err);
    return rc == 0 ? PLAN_GOOD : op_say(&err);
}

enum { OUTPUTS = 256 };           /* most that are shown as JSON              */

static int op_json(const struct dtensor_op_call *call, FILE *stream)
{
    struct dtensor_spec *want = calloc((size_t)call->nin + OUTPUTS,
                                       sizeof *want);
    struct dtensor_op_info info;
    struct dtensor_error err;
    int status;

    if (!want) {
        fprintf(stderr, "%s: out of memory\n", plan_program);
        return PLAN_BAD;
    }
    status = dtensor_op_infer(call, want, OUTPUTS, want + call->nin, &info,
                              &err) == 0
           ? plan_op_json(call, want, want + call->nin, &info, stream)
           : op_say(&err);
    free(want);
    return status;
}

/* "matmul takes its inputs as they lie: nothing has to be moved." */
static int op_sentence(const struct dtensor_op_call *call, FILE *stream)
{
    struct dtensor_spec *want = calloc((size_t)call->nin + OUTPUTS,
                                       sizeof *want);
    struct dtensor_op_info info;
    struct dtensor_error err = { .text = "out of memory" };
    int moved = 0, rc = -1;
    char time[32];

    if (want)
        rc = dtensor_op_infer(call, want, OUTPUTS, want + call->nin, &info,
                              &err);
    for (int i = 0; rc == 0 && i < call->nin; i++)
        moved += memcmp(want[i].placement, call->in[i].placement,
                        sizeof want[i].placement) != 0;
    free(want);
    if (rc != 0)
        return op_say(&err);
    fprintf(stream, "%s ", call->op);
    if (moved == 0)
        fputs("takes its inputs as they lie", stream);
    else
        fprintf(stream, "first redistributes %d of its %d input%s", moved,
                call->nin, call->nin == 1 ? "" : "s");
    if (info.predicted_us > 0)
        fprintf(stream, ", in about %s", draw_time(info.predicted_us, time,
                                                   sizeof time));
    fprintf(stream, ": %s.\n\n", info.why);
    return PLAN_GOOD;
}

static int op_text(const struct dtensor_op_call *call, FILE *stream)
{
    struct dtensor_error err;
    int status = op_sentence(call, stream);

    if (status == PLAN_GOOD && dtensor_op_print(call, stream, &err) != 0)
        status = op_say(&err);
    return status;
}

int plan_op(const struct plan_job *job, const struct plan_options *opt,
            FILE *stream)
{
    struct dtensor_spec *in = calloc((size_t)opt->ninputs, sizeof *in);
    struct dtensor_op_call call = { .op = opt->op, .nin = opt->ninputs,
                                    .in = in };
    struct dtensor_error err;
    int status;

    if (!in) {
        fprintf(stderr, "%s: out of memory\n", plan_program);
        return PLAN_BAD;
    }
    status = op_list_check(opt, "shape", opt->shape);
    if (status == PLAN_GOOD)
        status = op_list_check(opt, "dtype", opt->dtype);
    for (int i = 0; i < opt->ninputs && status == PLAN_GOOD; i++)
        status = op_input(job, opt, i, &in[i]);
    if (status == PLAN_GOOD &&
        dtensor_op_args_parse(opt->args ? opt->args : "", &call.args, &err))
        status = op_say(&err);
    if (status == PLAN_GOOD && opt->json)
        status = op_json(&call, stream);
    else if (status == PLAN_GOOD)
        status = op_text(&call, stream);
    free(in);
    return status;
}
