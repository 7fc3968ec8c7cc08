/* express_check.c - checks that a text is an expression of operators
 *
 * The library's own expressions are known to be valid.  An expression of a
 * program is parsed here, in the same way as express.c parses it later, but
 * nothing is computed.
 */
#include "tape/express.h"
#include "base/units.h"
#include "op/own.h"
#include "op/rule.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { ITEMS = 4, DEEPEST = 32 }; /* operands of a call; calls in calls       */

/* While a text is read. */
struct expression_reader {
    const struct dtn_express_about *about;
    const char *at;               /* what is read next                        */
    int depth;                    /* calls that are open                      */
};

static bool operand_known(const struct dtn_express_about *about, char c)
{
    if (c == 'y' || c == 'z')
        return c - 'y' < about->nout;
    return c >= 'a' && c <= 'd' && c - 'a' < about->nin;
}

static bool letter_fits(const struct dtn_express_about *about, const char *at,
                        size_t len)
{
    if (len == 2 && *at == '0')
        return operand_known(about, at[1]);
    return len == 1 && (*at == 'g' || (*at == 'h' && about->nout > 1) ||
                        operand_known(about, *at));
}

static bool number_fits(const char *at, size_t len)
{
    char *end;

    if (len == 1 && strchr("VPQMUWD", *at))
        return true;
    if ((!isdigit((unsigned char)*at) && *at != '-') ||
        (*at == '0' && islower((unsigned char)at[1])))   /* "0a", "0x1" */
        return false;
    dtn_parse_real(at, &end);
    return end == at + len;
}

static bool operator_known(const struct dtn_express_about *about,
                           const char *at, size_t len)
{
    char name[32];

    if (len == 0 || len >= sizeof name)
        return false;
    memcpy(name, at, len);
    name[len] = '\0';
    return dtn_express_is_step(name) || dtn_rule_known(name) ||
           strcmp(name, about->own) == 0 || dtn_own_find(about->ctx, name);
}

static const char *item_fault(struct expression_reader *r, bool *tensorp);

/* What stands between the brackets. */
static const char *items_fault(struct expression_reader *r)
{
    const char *fault = NULL;
    int tensors = 0;

    for (;;) {
        bool tensor = false;

        fault = item_fault(r, &tensor);
        tensors += tensor;
        if (fault)
            return fault;
        if (tensors > ITEMS)
            return "a call has more than 4 operands";
        if (*r->at != ',')
            break;
        r->at++;
    }
    if (*r->at != ')')
        return "a bracket is not closed";
    r->at++;
    return tensors > 0 ? NULL : "a call has no operand";
}

static const char *item_fault(struct expression_reader *r, bool *tensorp)
{
    const char *at = r->at;
    const size_t len = strcspn(at, "(,)");
    const char *fault;

    *tensorp = true;
    if (at[len] == '(') {
        if (!operator_known(r->about, at, len))
            return "there is no such operator";
        if (++r->depth > DEEPEST)
            return "there are more than 32 calls in each other";
        r->at += len + 1;
        fault = items_fault(r);
        r->depth--;
        return fault;
    }
    if (!letter_fits(r->about, at, len)) {
        *tensorp = false;
        if (r->depth == 0 || !number_fits(at, len))
            return "it is no letter that the operator has, no number and no "
                   "call";
    }
    r->at += len;
    return NULL;
}

const char *dtn_express_fault(const struct dtn_express_about *about,
                              const char *text, const char **atp)
{
    struct expression_reader r = { .about = about, .at = text };
    bool tensor;
    const char *fault = item_fault(&r, &tensor);

    *atp = r.at;
    if (!fault && *r.at)
        fault = "the expression has ended before";
    return fault;
}
