/* comma.h - a locale with a decimal comma */
#ifndef TESTS_SUPPORT_COMMA_H
#define TESTS_SUPPORT_COMMA_H

#include <stdbool.h>

/* Make the locale, and remove it at the end.  If this machine cannot make one,
 * the claim is skipped.
 */
void comma_make(const char *claim);
void comma_remove(void);

/* Numbers have a decimal comma from now on; false: no locale was made. */
bool comma_set(void);
void comma_unset(void);

#endif
