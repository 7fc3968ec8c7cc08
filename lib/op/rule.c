/* rule.c - from the name of an operator to its rule */
#include "op/rule.h"
#include "op/own.h"
#include "base/error.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 256 };         /* of all operators                         */

/* The rule of the library that has this name. */
static const struct dtn_rule *rule_find(const char *name)
{
    for (int i = 0; i < dtn_nrules; i++)
        for (const char *const *at = dtn_rules[i].names; *at; at++)
            if (**at == *name && strcmp(*at, name) == 0)
                return &dtn_rules[i];
    return NULL;
}

/* Names with a "/" are those of variants, which nobody asks for. */
const char *dtensor_op_name(int i)
{
    for (int r = 0; r < dtn_nrules; r++)
        for (const char *const *at = dtn_rules[r].names; *at; at++)
            if (!strchr(*at, '/') && i-- == 0)
                return *at;
    return NULL;
}

static int rule_unknown(const char *name, struct dtensor_error *err)
{
    const char *known[NAMES_MAX + 1] = { NULL };
    char advice[200];

    for (int i = 0; i < NAMES_MAX && dtensor_op_name(i); i++)
        known[i] = dtensor_op_name(i);
    return dtn_fail(err, DTENSOR_EINVAL, "op: no operator \"%s\" (%s)", name,
                    dtensor_advise(name, known, "one of those of "
                                   "dtensor_op_infer(3)", advice,
                                   sizeof advice));
}

/* The rule that the program gave that name; NULL: none. */
static const struct dtn_rule *rule_own(const struct dtensor_op_call *call)
{
    const struct dtn_own *own = NULL;

    if (call->op && call->nin > 0 && call->in && call->in[0].mesh)
        own = dtn_own_find(call->in[0].mesh->ctx, call->op);
    return own && own->rule.letters ? &own->rule : NULL;
}

bool dtn_rule_known(const char *name)
{
    return !strchr(name, '/') && rule_find(name);
}

int dtn_rule_of(const struct dtensor_op_call *call,
                const struct dtn_rule **rulep, struct dtensor_error *err)
{
    const struct dtn_rule *rule = rule_own(call);
    const char *word;
    char name[64];

    if (!rule && call->op && !strchr(call->op, '/'))
        rule = rule_find(call->op);
    if (!rule)
        return rule_unknown(call->op ? call->op : "", err);
    word = rule->variant ? rule->variant(call) : NULL;
    if (word) {
        snprintf(name, sizeof name, "%s/%s", call->op, word);
        rule = rule_find(name);
    }
    *rulep = rule;
    return 0;
}
