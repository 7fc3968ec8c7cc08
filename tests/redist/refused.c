/* refused.c - a call that must be refused, in these words, and write nothing */
#include "tests/redist/refused.h"
#include "tests/support/tap.h"

#include <string.h>

struct outs out;
struct dtensor_error why;

void outs_begin(void)
{
    memset(&out, 0x5a, sizeof out);
    memset(&why, 0, sizeof why);
}

bool outs_untouched(void)
{
    const unsigned char *byte = (const unsigned char *)&out;

    for (size_t i = 0; i < sizeof out; i++)
        if (byte[i] != 0x5a)
            return false;
    return true;
}

bool is_refused(const char *call, int rc, const char *words)
{
    if (rc == DTENSOR_EINVAL && why.code == rc && outs_untouched() &&
        strcmp(why.text, words) == 0)
        return true;
    note("%s is %s, \"%s\"%s", call, dtensor_errname(rc), why.text,
         outs_untouched() ? "" : ", and wrote");
    return false;
}
