/* malformed.h - a good cluster file, and rows of mistakes made in it
 *
 * An edit is `=N text` (line N becomes text), `-N` (without line N) or
 * `+N text` (text before line N); N counts the lines of the good file.
 */
#ifndef TESTS_CLUSTER_MALFORMED_H
#define TESTS_CLUSTER_MALFORMED_H

#include <stddef.h>

struct malformed {
    const char *what;             /* the claim                                */
    const char *edits;            /* one on each line                         */
    const char *expected;         /* all that is reported: errors, warnings   */
};

/* Claim that the file without edits is good. */
void malformed_good(void);

/* Claim of each of the n rows that exactly what it expects is reported. */
void malformed_rows(const struct malformed rows[], size_t n);

#endif
