/* golden_counts.c - what PyTorch 2.15 moves for a style, on 4 ranks */
#include "tests/module/golden_counts.h"

const struct golden golden[GOLDEN_COUNTS] = {
    { "linear", { { "m", "colwise" } }, "R", true, "0 0 0", "0 1 0" },
    { "linear", { { "m", "colwise" } }, "R", false, "0 0 0", "0 0 0" },
    { "linear", { { "m", "colwise" } }, "S(0)", true, "1 0 0", "0 0 1" },
    { "linear", { { "m", "colwise output=R" } }, "R", true, "1 0 0", "0 1 0" },
    { "linear", { { "m", "rowwise" } }, "S(1)", true, "0 1 0", "0 0 0" },
    { "linear", { { "m", "rowwise output=S(0)" } }, "S(1)", true, "0 0 1",
      "1 0 0" },
    { "linear", { { "m", "rowwise" } }, "R", true, "0 1 0", "1 0 0" },
    { "embedding", { { "m", "colwise" } }, "R", false, "0 0 0", "0 0 0" },
    { "embedding", { { "m", "rowwise" } }, "R", false, "0 1 0", "0 0 0" },
    { "embedding", { { "m", "rowwise output=S(1)" } }, "R", false, "0 0 1",
      "1 0 0" },
    { "layer_norm", { { "m", "sequence dim=0" } }, "S(0)", true, "0 0 0",
      "0 1 0" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise" } }, "R", false,
      "0 1 0", "0 0 0" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise" } }, "R", true,
      "0 1 0", "0 1 0" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } },
      "S(0)", false, "1 0 1", "1 0 0" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } },
      "S(0)", true, "1 0 1", "1 0 1" },
    { "bare mlp", { { "m.up", "colwise" }, { "m.down", "rowwise" } }, "R",
      false, "0 1 0", "0 0 0" },
    { "bare mlp", { { "m.up", "colwise" }, { "m.down", "rowwise" } }, "R", true,
      "0 1 0", "0 1 0" },
    { "bare mlp", { { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } },
      "S(0)", false, "1 0 1", "1 0 0" },
    { "bare mlp", { { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } },
      "S(0)", true, "1 0 1", "1 0 1" }
};

int golden_styles(const struct golden *g)
{
    int n = 0;

    while (n < 3 && g->plan[n].pattern)
        n++;
    return n;
}
