/* philox_lanes.h - the blocks of philox.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, LANES_NAME(x), which keeps the names apart, LANES, how many
 * blocks go side by side in a vector, LANES_ABREAST, how many vectors are made
 * at a time, and the operations on a vector of LANES 64-bit lanes. A 32-bit
 * word lies in the lower half of its lane and the upper half is never looked
 * at: LANES_MUL multiplies lower halves, so its product is the low word as it
 * stands, and the high word after one shift.
 */

/* One round of one vector of blocks: its products, and the factors of the next
 * round.  After the last round the words are stored side by side: LANES_PAIR
 * puts high(p) ^ c ^ k below low(p).
 */
#define LANES_ROUND(c, k)                                                     \
    do {                                                                      \
        const LANES_V p0 = LANES_MUL((c)[0], m0);                             \
        const LANES_V p1 = LANES_MUL((c)[2], m1);                             \
                                                                              \
        (c)[0] = LANES_XOR3(LANES_HIGH(p1), (c)[1], (k)[0]);                  \
        (c)[2] = LANES_XOR3(LANES_HIGH(p0), (c)[3], (k)[1]);                  \
        (c)[1] = p1;                                                          \
        (c)[3] = p0;                                                          \
    } while (0)
#define LANES_LAST(c, k, out)                                                 \
    do {                                                                      \
        const LANES_V p0 = LANES_MUL((c)[0], m0);                             \
        const LANES_V p1 = LANES_MUL((c)[2], m1);                             \
                                                                              \
        LANES_STORE(out, LANES_PAIR(p1, (c)[1], (k)[0]),                      \
                    LANES_PAIR(p0, (c)[3], (k)[1]));                          \
    } while (0)

/* Several vectors are computed in parallel, because a round waits seven cycles
 * for the one before it.  With AVX-512, four vectors give 13.8 GB/s on a Zen 4
 * of 3.6 GHz, and two give 12.1.  AVX2 has only half of the registers.
 * `moving` is a constant, so half of the first two rounds leaves the loop: the
 * part that does not depend on that word.
 */
LANES_TARGET LANES_INLINE
static inline void LANES_NAME(along)(const struct philox_run *run,
                                     size_t nblocks, uint32_t *out, int moving)
{
    const LANES_V m0 = LANES_SET(PHILOX_M0), m1 = LANES_SET(PHILOX_M1);
    const LANES_V step = LANES_SET(LANES);
    LANES_V first[4], key[PHILOX_ROUNDS][2];
    const int last = PHILOX_ROUNDS - 1;

    for (int w = 0; w < 4; w++)
        first[w] = LANES_SET(run->word[w]);
    first[moving] = LANES_ADD(first[moving], LANES_COUNT);
    for (int r = 0; r < PHILOX_ROUNDS; r++) {
        key[r][0] = LANES_SET(run->key[r][0]);
        key[r][1] = LANES_SET(run->key[r][1]);
    }
    for (size_t i = 0; i < nblocks; i += LANES_ABREAST * LANES) {
        LANES_V c[LANES_ABREAST][4];

        LANES_UNROLL
        for (int v = 0; v < LANES_ABREAST; v++) {
            for (int w = 0; w < 4; w++)
                c[v][w] = first[w];
            first[moving] = LANES_ADD(first[moving], step);
        }
        LANES_UNROLL
        for (int r = 0; r < last; r++) {
            LANES_UNROLL
            for (int v = 0; v < LANES_ABREAST; v++)
                LANES_ROUND(c[v], key[r]);
        }
        LANES_UNROLL
        for (int v = 0; v < LANES_ABREAST; v++)
            LANES_LAST(c[v], key[last], out + 4 * (i + (size_t)v * LANES));
    }
}

/* As philox_blocks_f, for a multiple of LANES_ABREAST * LANES blocks. */
LANES_TARGET static void LANES_NAME(blocks)(const struct philox_run *run,
                                            size_t nblocks, uint32_t *out)
{
    if (run->moving == 0)
        LANES_NAME(along)(run, nblocks, out, 0);
    else
        LANES_NAME(along)(run, nblocks, out, 2);
}

#undef LANES
#undef LANES_ABREAST
#undef LANES_V
#undef LANES_SET
#undef LANES_COUNT
#undef LANES_ADD
#undef LANES_MUL
#undef LANES_HIGH
#undef LANES_XOR3
#undef LANES_PAIR
#undef LANES_STORE
#undef LANES_TARGET
#undef LANES_NAME
#undef LANES_ROUND
#undef LANES_LAST
