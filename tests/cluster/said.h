/* said.h - what was seen, as text in a buffer of the caller's */
#ifndef TESTS_CLUSTER_SAID_H
#define TESTS_CLUSTER_SAID_H

enum { SAID = 32768 };            /* bytes of the buffer                      */

/* From here on, say() writes to `said`. */
void say_begin(char said[SAID]);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
