/* random_stream.c - random words on stdout, those of four shards interleaved
 *
 * `random_stream TRACKER` plays the four ranks that hold u32[4, 8191] as S(0),
 * operation after operation, and writes word i of each shard in turn: what they
 * have in common would show in a battery of tests.  A part is no whole number
 * of blocks: of whole ones both trackers would make the same words.  It ends
 * when nobody reads.
 */
#include "random/random.h"

#include <string.h>

enum { RANKS = 4, EACH = 8191 };

int main(int argc, char **argv)
{
    static struct dtensor_mesh mesh = { .ndim = 1, .size = { RANKS },
                                        .group = { .n = RANKS } };
    const struct dtensor_spec spec = {
        &mesh, DTENSOR_U32, 2, { RANKS, EACH }, { { .kind = DTENSOR_SHARD } }
    };
    struct dtensor_generator gen = { .seed = 20251120, .rule = {
        .tracker = argc > 1 && strcmp(argv[1], "offset") == 0 ?
                   DTENSOR_TRACKER_OFFSET : DTENSOR_TRACKER_GLOBAL } };
    static uint32_t shard[RANKS][EACH], woven[EACH][RANKS];
    struct dtn_draw draw = { 0 };
    struct dtn_dist dist;

    dtn_dist_bits(&dist, DTENSOR_U32, NULL);
    do {
        for (int r = 0; r < RANKS; r++) {
            if (dtn_draw_of(&gen, &dist, &spec, r, &draw, NULL) != 0)
                return 1;
            const struct dtn_stream stream =
                dtn_stream_of(&gen.rule, draw.seed, draw.offset, draw.numel);

            dtn_fill(&stream, &dist, draw.global ? r * EACH : 0, EACH,
                     shard[r]);
        }
        for (int i = 0; i < EACH; i++)
            for (int r = 0; r < RANKS; r++)
                woven[i][r] = shard[r][i];
        gen.offset = draw.after;
    } while (fwrite(woven, sizeof woven, 1, stdout) == 1);
    return 0;
}
