/* rand.c - repeatable random numbers for tests (splitmix64) */
#include "tests/support/rand.h"

#include <stdlib.h>

uint64_t rand_seed(uint64_t otherwise)
{
    const char *text = getenv("TEST_SEED");

    return text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t rand_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int rand_below(uint64_t *state, int n)
{
    return (int)(rand_next(state) >> 33) % n;
}

void rand_bytes(uint64_t *state, void *mem, size_t size)
{
    unsigned char *p = mem;

    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)(rand_next(state) >> 32);
}

int rounds_of(int usual)
{
    const char *percent = getenv("DTN_TEST_ROUNDS");
    int n = percent ? usual * atoi(percent) / 100 : usual;

    return n > 0 ? n : 1;
}
