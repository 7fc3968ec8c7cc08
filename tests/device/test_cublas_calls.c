/* test_cublas_calls.c - the list of calls of cuBLAS against NVIDIA's own header
 *
 * As test_cuda_calls.c: if the type of a parameter or a number differs, this
 * file does not compile.
 *
 * Without this test, a stride of 64 bits could be passed as an int, which would
 * be seen on a GPU only, with large matrices.
 */
#include "tests/support/tap.h"

#if defined HAVE_CUDA_H && defined __has_include
#if __has_include(<cublas_v2.h>)
#define HAVE_CUBLAS_H
#endif
#endif

#ifdef HAVE_CUBLAS_H
#include <cublas_v2.h>
#define DTN_CUDA_BY_NVIDIA
#include "device/cuda/cublas.h"

#define SAME_CALL(name, params)                                               \
    _Static_assert(__builtin_types_compatible_p(cublasStatus_t (*) params,    \
                                                __typeof__(&name)), #name);
DTN_CUBLAS_CALLS(SAME_CALL)

#define SAME_NUMBER(name, value)                                              \
    _Static_assert((int)name == (value), #name);
DTN_CUBLAS_NUMBERS(SAME_NUMBER)

#define ONE_CALL(name, params) + 1
#define ONE_NUMBER(name, value) + 1

int main(void)
{
    int calls = 0 DTN_CUBLAS_CALLS(ONE_CALL);
    int numbers = 0 DTN_CUBLAS_NUMBERS(ONE_NUMBER);

    ok(calls > 0 && numbers > 0, "%d calls and %d numbers are those of "
       "cublas_v2.h", calls, numbers);
    return done();
}

#else

int main(void)
{
    return skip_all("no cublas_v2.h: install the CUDA toolkit");
}

#endif
