/* random123.c - uniform floats by Random123's own function, one after the other
 *
 * The loop that its manual shows: a block, four floats, the next counter.
 */
#include <Random123/philox.h>
#include <Random123/u01fixedpt.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    const size_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 28) / 4;
    float *out = calloc(n, sizeof *out);
    double best = 1e9, spent;

    if (!out)
        return 1;
    for (int k = 0; k < 5; k++) {
        philox4x32_ctr_t ctr = { { 0 } };
        const philox4x32_key_t key = { { (uint32_t)k, 0 } };

        spent = now();
        for (size_t i = 0; i + 4 <= n; i += 4) {
            const philox4x32_ctr_t r = philox4x32(ctr, key);

            for (int w = 0; w < 4; w++)
                out[i + (size_t)w] = u01fixedpt_open_open_32_float(r.v[w]);
            ctr.v[0]++;
        }
        spent = now() - spent;
        best = spent < best ? spent : best;
    }
    printf("%.2f\n", (double)n * 4e-9 / best);
    free(out);
    return 0;
}
