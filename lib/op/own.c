/* own.c - operators of the program
 *
 * A definition becomes a rule and a local function like those of the tables,
 * and is looked up before them: when a decision is made, not when it is found
 * again.  For example "mk,kn->mn" under the name of matmul takes the place of
 * the library's rule, and leaves the library's loops.
 */
#include "op/own.h"
#include "base/error.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "math/array.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 5 + DTENSOR_OP_GRADS };

const struct dtn_own *dtn_own_find(const struct dtensor_ctx *ctx,
                                   const char *op)
{
    const struct dtn_own *own = ctx->slots[DTN_ROOM_OWN].state;

    while (own && strcmp(own->def.name, op) != 0)
        own = own->next;
    return own;
}

/* ---------------------------------------------------------------- local --- */

static struct dtensor_op_part part_of(const struct dtn_array *array,
                                      const struct dtensor_spec *spec)
{
    struct dtensor_op_part part = {
        .spec = spec, .count = dtn_array_count(array), .data = array->data };

    memcpy(part.shape, array->shape,
           (size_t)array->ndim * sizeof part.shape[0]);
    return part;
}

/* The dtn_local_f of all operators of the program. */
static int own_run(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const struct dtn_own *own = (const struct dtn_own *)local;
    struct dtensor_op_part in[DTN_RULE_IN], out[DTN_RULE_OUT];
    const struct dtensor_op_run run = {
        .op = parts->op, .args = parts->args, .nin = parts->nin,
        .nout = parts->nout, .in = in, .out = out, .arg = own->def.arg };
    struct dtensor_error none, *why = dtn_error_ready(err, &none);

    if (parts->nin > DTN_RULE_IN || parts->nout > DTN_RULE_OUT)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %d inputs and %d outputs "
                        "(a function of the program takes at most %d and %d)",
                        parts->op, parts->nin, parts->nout, DTN_RULE_IN,
                        DTN_RULE_OUT);
    for (int i = 0; i < parts->nin; i++)
        in[i] = part_of(&parts->in[i], &parts->want[i]);
    for (int i = 0; i < parts->nout; i++)
        out[i] = part_of(&parts->out[i], &parts->spec[i]);
    return dtn_fail_program(why, own->def.local(&run, why),
                            "%s: its local function", parts->op);
}

/* ----------------------------------------------------------------- made --- */

/* Has an input this letter?  Capitals are the same. */
static bool input_has(const char *letters, char letter)
{
    for (const char *at = letters; at < strstr(letters, "->"); at++)
        if (tolower((unsigned char)*at) == tolower((unsigned char)letter))
            return true;
    return false;
}

/* What it reads of the arguments follows from its letters. */
static unsigned reads_of(const struct dtensor_op_def *def)
{
    const char *output = strstr(def->letters, "->") + 2;
    unsigned reads = 0;

    if (strpbrk(def->letters, "!&"))
        reads |= DTN_ARG_DIM;
    if (strstr(output, "*-"))
        reads |= DTN_ARG_DIM | DTN_ARG_KEEP;
    for (; *output; output++)
        if (isalpha((unsigned char)*output) &&
            !input_has(def->letters, *output))
            reads |= DTN_ARG_COUNT;
    if (def->types && strchr(def->types, 'c'))
        reads |= DTN_ARG_DTYPE;
    return reads;
}

static void own_rule(struct dtn_own *own)
{
    const struct dtensor_op_def *def = &own->def;

    own->names[0] = def->name;
    own->rule = (struct dtn_rule){
        .names = own->names, .letters = def->letters, .terms = def->terms,
        .types = def->types, .reduce = def->reduce, .least = def->least,
        .reads = reads_of(def), .flags = DTN_RULE_SMALL };
    if (def->reduce == DTENSOR_AVG)
        own->rule.flags |= DTN_RULE_EVEN;
    if (strchr(def->letters, '&'))
        own->rule.flags |= DTN_RULE_ONE;
}

/* The texts of a definition, to be replaced by copies. */
static void texts_of(struct dtensor_op_def *def, const char **text[TEXTS])
{
    const char **const some[] = { &def->name, &def->letters, &def->terms,
                                  &def->types, &def->keeps };

    memcpy(text, some, sizeof some);
    for (int i = 0; i < DTENSOR_OP_GRADS; i++)
        text[5 + i] = &def->grad[i];
}

int dtn_own_make(struct dtensor_ctx *ctx, const struct dtensor_op_def *def,
                 struct dtn_own **ownp, struct dtensor_error *err)
{
    struct dtensor_op_def copy = *def;
    const char **text[TEXTS];
    size_t bytes = sizeof **ownp;
    struct dtn_own *own;
    char *at;

    texts_of(&copy, text);
    for (int i = 0; i < TEXTS; i++)
        bytes += *text[i] ? strlen(*text[i]) + 1 : 0;
    own = calloc(1, bytes);
    if (!own)
        return dtn_fail_nomem(err, "op_register", bytes);
    at = (char *)(own + 1);
    own->def = copy;
    texts_of(&own->def, text);
    for (int i = 0; i < TEXTS; i++)
        if (*text[i]) {
            *text[i] = strcpy(at, *text[i]);
            at += strlen(at) + 1;
        }
    if (own->def.letters)
        own_rule(own);
    own->local = (struct dtn_local){ .op = own->def.name, .run = own_run };
    *ownp = own;
    return 0;
}

static void owns_destroy(void *state)
{
    for (struct dtn_own *own = state, *next; own; own = next) {
        next = own->next;
        free(own);
    }
}

void dtn_own_keep(struct dtensor_ctx *ctx, struct dtn_own *own)
{
    own->next = ctx->slots[DTN_ROOM_OWN].state;
    ctx->slots[DTN_ROOM_OWN] = (struct dtn_slot){ .state = own,
                                                  .destroy = owns_destroy };
}
