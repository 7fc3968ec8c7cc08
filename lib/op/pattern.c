/* pattern.c - the letters of a rule, cut up; see rule.h */
#include "op/pattern.h"

#include <string.h>

/* Read one operand and return where it ends: at ',', '+', '-' or '\0'. */
static const char *pattern_read(const char *at, struct dtn_pattern *p)
{
    *p = (struct dtn_pattern){ .loose = *at == '~' };
    at += p->loose;
    p->star = *at == '*';
    at += p->star;
    if (p->star && (*at == '!' || *at == '&' ||
                    (*at == '-' && at[1] != '>')))
        p->mark = *at++;
    if (p->mark == '&')
        p->with = *at++;
    p->index = *at == '#';
    at += p->index;
    if (p->index && *at == '!')
        p->mark = *at++;
    p->constant = *at == '.';
    at += p->constant;
    while (*at && !strchr(",+-", *at))
        p->letter[p->n++] = *at++;
    return at;
}

void dtn_patterns_read(const char *letters, struct dtn_patterns *patterns)
{
    const char *at = letters;
    int sum = 0;

    *patterns = (struct dtn_patterns){ 0 };
    for (;;) {
        at = pattern_read(at, &patterns->in[patterns->nin]);
        patterns->in[patterns->nin++].sum = sum;
        if (*at == '-')
            break;
        sum += *at++ == '+';
    }
    patterns->nsums = sum + 1;
    for (at += 1; *at; )               /* at ">" or ","                       */
        at = pattern_read(at + 1, &patterns->out[patterns->nout++]);
}

int dtn_pattern_span(const struct dtn_pattern *pattern, int i, int count,
                     int ndim)
{
    const char letter = pattern->letter[i];

    if (letter == '@' && !pattern->star && count == 0)
        return ndim - (pattern->n - 1);
    return letter == '@' || letter == '1' ? (count ? count : 1) : 1;
}

int dtn_pattern_fixed(const struct dtn_pattern *pattern, int count, int ndim)
{
    int fixed = 0;

    for (int i = 0; i < pattern->n; i++)
        fixed += dtn_pattern_span(pattern, i, count, ndim);
    return fixed;
}
