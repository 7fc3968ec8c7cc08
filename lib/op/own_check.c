/* own_check.c - is the definition of an operator right?
 *
 * The texts of the library's rules are right, and tests look at them; those of
 * a program are looked at here, so that all that reads them later may trust
 * them.  An error quotes the text.
 */
#include "op/own.h"
#include "op/pattern.h"
#include "base/compiler.h"
#include "base/error.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 31 };

/* What is wrong, with the text in which it is. */
struct own_fault {
    const char *text;             /* the text; NULL: no fault                 */
    const char *field;            /* which one it is                          */
    const char *why;              /* in words                                 */
};

static struct own_fault none(void)
{
    return (struct own_fault){ NULL, NULL, NULL };
}

/* -------------------------------------------------------------- letters --- */

/* One operand, "*!mk"; where it ends, or NULL. */
static const char *operand_end(const char *at, bool output)
{
    int n = 0;

    if (*at == '*') {
        at++;
        if (*at == '!')
            at++;
        else if (output && *at == '-')
            at++;
        else if (output && *at == '&' && islower((unsigned char)at[1]))
            at += 2;
    }
    for (; isalpha((unsigned char)*at); at++)
        if (++n > DTENSOR_MAX_DIMS)
            return NULL;
    return at;
}

/* Operands up to `end`; how many, or -1. */
static int operands_count(const char *at, const char *end, bool output,
                          int most)
{
    int n = 0;

    for (;;) {
        at = operand_end(at, output);
        if (!at || at > end || ++n > most)
            return -1;
        if (at == end)
            return n;
        if (*at != ',' && (output || *at != '+'))
            return -1;
        at++;
    }
}

/* "*&i" puts a letter of an input in the place of a dimension. */
static bool places_known(const char *letters, const char *arrow)
{
    for (const char *mark = arrow; (mark = strchr(mark, '&')); mark++)
        if (!memchr(letters, mark[1], (size_t)(arrow - letters)))
            return false;
    return true;
}

static struct own_fault letters_fault(const char *letters)
{
    const char *arrow = letters ? strstr(letters, "->") : NULL;
    struct own_fault fault = { letters, "letters", NULL };

    if (!letters)
        return none();
    if (!arrow)
        fault.why = "there is no \"->\"";
    else if (operands_count(letters, arrow, false, DTN_RULE_IN) < 0)
        fault.why = "the inputs are not 1 to 8 of letters, *, *!";
    else if (operands_count(arrow + 2, arrow + strlen(arrow), true,
                            DTN_RULE_OUT) < 0)
        fault.why = "the outputs are not 1 to 4 of letters, *, *!, *-, *&i";
    else if (!places_known(letters, arrow))
        fault.why = "no input has the letter after &";
    return fault.why ? fault : none();
}

int dtn_own_inputs(const struct dtensor_op_def *def)
{
    struct dtn_patterns patterns;

    if (!def->letters)
        return 0;
    dtn_patterns_read(def->letters, &patterns);
    return patterns.nin;
}

int dtn_own_outputs(const struct dtensor_op_def *def)
{
    struct dtn_patterns patterns;

    if (!def->letters)
        return 0;
    dtn_patterns_read(def->letters, &patterns);
    return patterns.nout;
}

/* ----------------------------------------------------- terms and types --- */

/* One word, "s.>s", of `len` characters. */
static bool term_fits(const char *word, size_t len, int nout)
{
    const char *mark = memchr(word, '>', len);
    const size_t in = mark ? (size_t)(mark - word) : 0;

    return mark && in >= 1 && in <= DTN_RULE_IN && len - in >= 2 &&
           len - in - 1 <= (size_t)nout &&
           strspn(word, "saxnpLA.") == in &&
           strspn(mark + 1, "saxnpLA.") == len - in - 1;
}

static struct own_fault terms_fault(const struct dtensor_op_def *def)
{
    const char *at = def->terms ? def->terms : "";

    while (*at) {
        const size_t len = strcspn(at, " ");

        if (!def->letters || !term_fits(at, len, dtn_own_outputs(def)))
            return (struct own_fault){ def->terms, "terms", def->letters
                ? "a word is not one of s a x n p L A . for each input, >, and "
                  "for each output" : "there are no letters to go with it" };
        at += len + (at[len] == ' ');
    }
    return none();
}

static struct own_fault types_fault(const struct dtensor_op_def *def)
{
    static const char known[] = "tnrfbic?";
    const char *types = def->types, *mark = types ? strchr(types, '>') : NULL;
    size_t in, out;

    if (!types)
        return none();
    in = mark ? (size_t)(mark - types) : 0;
    out = mark ? strlen(mark + 1) : 0;
    if (def->letters && in >= 1 && in <= DTN_RULE_IN && out >= 1 &&
        out <= DTN_RULE_OUT && strspn(types, known) == in &&
        strspn(mark + 1, known) == out)
        return none();
    return (struct own_fault){ types, "types", def->letters
        ? "expected a letter of t n r f b i c ? for each input, >, and for "
          "each output" : "there are no letters to go with it" };
}

/* ------------------------------------------------------------- the rest --- */

static struct own_fault name_fault(const char *name)
{
    struct own_fault fault = { name ? name : "", "name", NULL };
    size_t n = 0;

    while (name && (isalnum((unsigned char)name[n]) || name[n] == '_'))
        n++;
    if (!name || n == 0 || name[n] || n > NAME_MAX_LENGTH)
        fault.why = "expected 1 to 31 letters, digits and _";
    return fault.why ? fault : none();
}

static struct own_fault keeps_fault(const char *keeps)
{
    if (!keeps || strspn(keeps, "abcdyz ") == strlen(keeps))
        return none();
    return (struct own_fault){ keeps, "keeps",
                               "expected letters of a b c d y z" };
}

static int count_check(const struct dtensor_op_def *def,
                       struct dtensor_error *err)
{
    const int nin = dtn_own_inputs(def);

    if (def->letters && (def->least < 0 || def->least > nin))
        return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: least is %d "
                        "(expected 0 to %d)", def->name, def->least, nin);
    if ((unsigned)def->reduce > DTENSOR_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: reduce is %s "
                        "(expected sum, avg, max, min or prod)", def->name,
                        dtensor_redop_name(def->reduce));
    return 0;
}

/* What the library has not has to be given. */
static int library_check(const struct dtensor_op_def *def,
                         struct dtensor_error *err)
{
    const bool letters = def->letters || dtn_rule_known(def->name);

    if (!letters || (!def->local && !dtn_local_of(def->name)))
        return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: %s is NULL, and "
                        "the library has no operator of that name", def->name,
                        letters ? "local" : "letters");
    return 0;
}

int dtn_own_check(const struct dtensor_op_def *def, struct dtensor_error *err)
{
    const struct own_fault faults[] = {
        name_fault(def->name), letters_fault(def->letters),
        keeps_fault(def->keeps)
    };
    struct own_fault fault;
    int rc;

    for (size_t i = 0; i < DTN_COUNT(faults); i++)
        if (faults[i].text)
            return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s \"%.100s\": "
                            "%s", faults[i].field, faults[i].text,
                            faults[i].why);
    fault = terms_fault(def);
    if (!fault.text)
        fault = types_fault(def);
    if (fault.text)
        return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: %s \"%.100s\": "
                        "%s", def->name, fault.field, fault.text, fault.why);
    rc = count_check(def, err);
    return rc == 0 ? library_check(def, err) : rc;
}
