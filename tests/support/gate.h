/* gate.h - a process waits until another one lets it go on
 *
 * A rank that is to be late must not trust a sleep: on a loaded machine the
 * others may be later.  A gate is made before the fork, by the parent of all.
 */
#ifndef TESTS_GATE_H
#define TESTS_GATE_H

struct gate {
    int fd[2];                    /* a pipe: a byte for each that may pass    */
};

/* Ends the test if there is no descriptor for it. */
void gate_make(struct gate *gate);

/* Let so many pass, of those that wait and those that come later. */
void gate_open(const struct gate *gate, int n);

/* Wait to be let through. */
void gate_pass(const struct gate *gate);

#endif
