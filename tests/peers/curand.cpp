/* curand.cpp - what CUDA's kernels draw, played on the CPU
 *
 * `curand DIST N SEED OFFSET SMS THREADS` writes N values, one a line: NVIDIA's
 * own headers make them, thread after thread of the grid that PyTorch starts,
 * each with a subsequence of its own.  DIST is u32, words; f32 or f64, uniform; n32
 * or n64, normal; i32, modulo 1000; or i64, two words modulo WIDE.
 */
#define QUALIFIERS static inline
#include <cuda_runtime.h>
#include <curand_kernel.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static const uint64_t WIDE = 1000000000039;

typedef curandStatePhilox4_32_10_t philox;

/* Four values of a thread, or two of two words. */
static int draw(const std::string &dist, philox *state, double value[4])
{
    if (dist == "f64" || dist == "n64") {
        const double2 two = dist == "f64" ? curand_uniform2_double(state)
                                          : curand_normal2_double(state);

        value[0] = two.x == 1 && dist == "f64" ? 0 : two.x;
        value[1] = two.y == 1 && dist == "f64" ? 0 : two.y;
        return 2;
    }
    if (dist == "f32" || dist == "n32") {
        const float4 four = dist == "f32" ? curand_uniform4(state)
                                          : curand_normal4(state);
        const float all[] = { four.x, four.y, four.z, four.w };

        for (int i = 0; i < 4; i++)
            value[i] = all[i] == 1 && dist == "f32" ? 0 : all[i];
        return 4;
    }
    const uint4 four = curand4(state);

    if (dist == "i64") {
        value[0] = (double)(((uint64_t)four.x << 32 | four.y) % WIDE);
        value[1] = (double)(((uint64_t)four.z << 32 | four.w) % WIDE);
        return 2;
    }
    const uint32_t all[] = { four.x, four.y, four.z, four.w };

    for (int i = 0; i < 4; i++)
        value[i] = dist == "i32" ? all[i] % 1000 : all[i];
    return 4;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    const std::string dist = argv[1];
    const long n = atol(argv[2]), most = atol(argv[5]) * (atol(argv[6]) / 256);
    const long blocks = (n + 255) / 256;
    const long threads = 256 * (blocks < most ? blocks : most);
    std::vector<double> out((size_t)n);

    for (long thread = 0; thread < threads && thread < n; thread++) {
        philox state;
        double value[4];

        curand_init(strtoull(argv[3], NULL, 0), (unsigned long long)thread,
                    strtoull(argv[4], NULL, 0), &state);
        for (long i = thread; i < n;) {
            const int each = draw(dist, &state, value);

            for (int k = 0; k < each; k++, i += threads)
                if (i < n)
                    out[(size_t)i] = value[k];
        }
    }
    for (double x : out)
        printf("%.*g\n", dist == "f32" || dist == "n32" ? 9 : 17, x);
    return 0;
}
