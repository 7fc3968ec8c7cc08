/* widen_lanes.h - the loops of widen.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.
 */
LANES_TARGET static void LANES_NAME(widen)(float *to, const uint16_t *from,
                                           int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtn_bf16_widen(from[i]);
}

LANES_TARGET static void LANES_NAME(narrow)(uint16_t *to, const float *from,
                                            int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtn_bf16_narrow(from[i]);
}

static const struct widen_loops LANES_NAME(loops) = {
    LANES_NAME(widen), LANES_NAME(narrow)
};

#undef LANES_TARGET
#undef LANES_NAME
