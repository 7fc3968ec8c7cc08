/* test_json.c - strings of JSON
 *
 * Without this test, a host or a scope with an odd name could make a report or
 * a trace that no program can read.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "tests/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is `text` written so? */
static bool written(const char *text, const char *want)
{
    char *made = NULL;
    size_t size;
    FILE *stream = open_memstream(&made, &size);
    bool good;

    dtn_json_string(text, stream);
    fclose(stream);
    good = strcmp(made, want) == 0;
    if (!good)
        note("%s", made);
    free(made);
    return good;
}

int main(void)
{
    ok(written("", "\"\"") && written("n1.example", "\"n1.example\""),
       "plain text");
    ok(written("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\""),
       "quotes and backslashes");
    ok(written("a\tb\n\x01\x7f", "\"a\\u0009b\\u000a\\u0001\x7f\""),
       "control characters");
    ok(written("\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80",
               "\"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80\""),
       "characters of 2, 3 and 4 bytes");
    ok(written("\xfc\x62", "\"\\ufffd" "b\"") && written("\x80", "\"\\ufffd\""),
       "a byte that begins no character");
    ok(written("a\xe2\x82", "\"a\\ufffd\\ufffd\""), "one that is cut");
    ok(written("\xc0\xaf", "\"\\ufffd\\ufffd\""),
       "one in more bytes than it needs");
    ok(dtn_utf8_length("\xed\x9f\xbf", 3) == 3 &&
       dtn_utf8_length("\xed\xa0\x80", 3) == 0, "half of a UTF-16 pair");
    ok(dtn_utf8_length("\xf4\x8f\xbf\xbf", 4) == 4 &&
       dtn_utf8_length("\xf4\x90\x80\x80", 4) == 0, "the last character");
    return done();
}
