/* rows.h - claims that begin with the number of their group */
#ifndef TESTS_REDIST_ROWS_H
#define TESTS_REDIST_ROWS_H

#include "tests/redist/refused.h"
#include "tests/support/tap.h"

#define row(section, call, words)                                             \
    ok(REFUSED(call, words), "%s refused: %s", section, why.text)
#define allowed(section, condition, what)                                     \
    ok(condition, "%s allowed: %s", section, what)

#endif
