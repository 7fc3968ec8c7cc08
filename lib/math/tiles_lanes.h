/* tiles_lanes.h - the loops of tiles.c, for one type and vector width
 *
 * Included once for each with LANES_T, the type of an element, and LANES_V, of
 * a vector; LANES_TARGET, the attribute that asks the compiler for it;
 * LANES_NAME(x), which keeps the names apart; LANES_SET(x), a vector of one
 * number; LANES_FMA(x, y, sum), x y + sum; LANES_ROWS and LANES_VECTORS, a
 * tile's rows, and its columns in vectors.
 *
 * A tile of the result stays in registers while the terms go by: of 12 rows and
 * 2 vectors there are 24 sums, and each number of b that was loaded is used 12
 * times.  A panel of a always has LANES_ROWS lanes, of which fewer may be used.
 */
#define LANES (int)(sizeof(LANES_V) / sizeof(LANES_T))

#define TILE(name, rows)                                                      \
    LANES_TARGET static void LANES_NAME(name)(                                \
        const void *panel_a, const void *panel_b, int64_t terms, void *out,   \
        int64_t apart, bool adds)                                             \
    {                                                                         \
        const LANES_T *a = panel_a, *b = panel_b;                             \
        LANES_T *to = out;                                                    \
        LANES_V sum[rows][LANES_VECTORS];                                     \
                                                                              \
        TILES_UNROLL                                                          \
        for (int r = 0; r < rows; r++)                                        \
            TILES_UNROLL                                                      \
            for (int v = 0; v < LANES_VECTORS; v++)                           \
                sum[r][v] = adds ? *(LANES_V *)(to + r * apart + v * LANES)   \
                                 : (LANES_V){ 0 };                            \
        for (; terms > 0; terms--) {                                          \
            LANES_V y[LANES_VECTORS];                                         \
                                                                              \
            TILES_UNROLL                                                      \
            for (int v = 0; v < LANES_VECTORS; v++)                           \
                y[v] = *(const LANES_V *)(b + v * LANES);                     \
            TILES_UNROLL                                                      \
            for (int r = 0; r < rows; r++) {                                  \
                const LANES_V x = LANES_SET(a[r]);                            \
                                                                              \
                TILES_UNROLL                                                  \
                for (int v = 0; v < LANES_VECTORS; v++)                       \
                    sum[r][v] = LANES_FMA(x, y[v], sum[r][v]);                \
            }                                                                 \
            a += LANES_ROWS;                                                  \
            b += LANES_VECTORS * LANES;                                       \
        }                                                                     \
        TILES_UNROLL                                                          \
        for (int r = 0; r < rows; r++)                                        \
            TILES_UNROLL                                                      \
            for (int v = 0; v < LANES_VECTORS; v++)                           \
                *(LANES_V *)(to + r * apart + v * LANES) = sum[r][v];         \
    }

TILE(tile_all, LANES_ROWS)
TILE(tile_four, 4)
TILE(tile_one, 1)

static const struct tiles_loops LANES_NAME(loops) = {
    .rows = LANES_ROWS, .columns = LANES_VECTORS * LANES,
    .all = LANES_NAME(tile_all),
    .four = LANES_NAME(tile_four),
    .one = LANES_NAME(tile_one),
};

#undef TILE
#undef LANES
#undef LANES_T
#undef LANES_V
#undef LANES_SET
#undef LANES_FMA
#undef LANES_ROWS
#undef LANES_VECTORS
#undef LANES_TARGET
#undef LANES_NAME
