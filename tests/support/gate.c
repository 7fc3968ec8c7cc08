/* gate.c - a process waits until another one lets it go on */
#include "tests/support/gate.h"
#include "tests/support/ranks.h"

#include <unistd.h>

void gate_make(struct gate *gate)
{
    if (pipe(gate->fd) != 0)
        exit(99);
}

void gate_open(const struct gate *gate, int n)
{
    for (int i = 0; i < n; i++)
        need(write(gate->fd[1], "x", 1) == 1, "a gate: %m");
}

void gate_pass(const struct gate *gate)
{
    char byte;

    need(read(gate->fd[0], &byte, 1) == 1, "a gate: %m");
}
