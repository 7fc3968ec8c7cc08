/* width_lanes.h - a file of loops, compiled for each vector width
 *
 * Included once by each NAME.c that has such a file, after
 *
 *     #define LANES_FILE "math/NAME_lanes.h"
 *     #define LANES_LOOPS struct NAME_loops
 *
 * It includes LANES_FILE for each width, with LANES_TARGET, the attribute that
 * asks the compiler for it, LANES_NAME(x), which keeps the names apart, and
 * LANES_WIDTH, its number.  The file undefines the first two, and makes a
 * constant LANES_LOOPS LANES_NAME(loops): they are widths[], by dtn_width().
 * LANES_SHORT is the attribute for loops of few instructions, which wait for
 * memory: a Zen 4 stores two vectors of 256 bits faster than one of 512.
 */
#include "math/width.h"

#define LANES_TARGET
#define LANES_SHORT
#define LANES_NAME(name) name##_plain
#define LANES_WIDTH 0
#include LANES_FILE
#undef LANES_WIDTH
#undef LANES_SHORT

#ifdef DTN_WIDTHS
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_SHORT DTN_TARGET_AVX2
#define LANES_NAME(name) name##_avx2
#define LANES_WIDTH 1
#include LANES_FILE
#undef LANES_WIDTH
#undef LANES_SHORT

#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_SHORT DTN_TARGET_AVX512_SHORT
#define LANES_NAME(name) name##_avx512
#define LANES_WIDTH 2
#include LANES_FILE
#undef LANES_WIDTH
#undef LANES_SHORT
#endif

static const LANES_LOOPS *const widths[] = {
    &loops_plain,
#ifdef DTN_WIDTHS
    &loops_avx2,
    &loops_avx512,
#endif
};
