#!/bin/bash
# pictures.sh - the pictures of the tools, as SVG, as pixels and as text
#
# Each SVG is read: its labels, that nothing leaves the frame and no words
# overlap.  It is then rendered, and the pixels are compared with it.  The text
# of the same pictures is compared with what it should be, in UTF-8, ASCII,
# colour, and on a terminal of 40 columns.
#
# Without this test, a picture could show a Partial like a replica, or words on
# top of words, and no one would see it before the reader.
. "$top_srcdir/tests/tap.sh"
tools_find
plan=$tools/dtensor-plan conf=$tools/dtensor-conf
command -v python3 >/dev/null || skip_all "no python3 to read SVG"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset LC_ALL LC_CTYPE LANG COLUMNS NO_COLOR DTN_CLUSTER

# Is DIR/x.svg good?  With the labels it must have.
rendered() {
    local png=-
    if command -v rsvg-convert >/dev/null; then
        png=$dir/x.png
        rsvg-convert "$dir/x.svg" -o "$png" || return
    elif python3 -c 'import cairosvg' 2>/dev/null; then
        png=$dir/x.png
        python3 -c 'import cairosvg, sys
cairosvg.svg2png(url=sys.argv[1], write_to=sys.argv[2])' "$dir/x.svg" "$png"
    fi
    python3 "$top_srcdir/tests/tools/picture.py" "$dir/x.svg" "$png" "$@"
}

# svg WORDS COMMAND... -- LABEL...
svg() {
    local words=$1 command=()
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    "${command[@]}" >"$dir/x.svg" 2>"$dir/err"
    is "$words" "$? $(rendered "$@")$(cat "$dir/err")" "0 good"
}

command -v rsvg-convert >/dev/null || python3 -c 'import cairosvg' 2>/dev/null ||
    skip_test "pixels are compared" "no rsvg-convert (Debian: librsvg2-bin)"

# ----------------------------------------------------------------- SVG ---
svg "a redistribute: before, after, arrows and bytes" \
    "$plan" --mesh 2x4 --names dp,tp --from 'S(0),P' --to 'R,S(1)' --shape 8192x8192 --svg -- \
    "f32[8192,8192]  S(0),P(sum)  on mesh(dp=2,tp=4)" "R,S(1)" "P(sum)" "0 + 1 + 2 + 3" \
    "4096-8191" "dim 0" "dim 1" "reduce-scatter 768 MiB" "all-gather 256 MiB" \
    "each of 32 arrows: 32.0 MiB" "rank 7 gets 128 MiB"
is "a Partial is hatched, a replica is not" \
    "$(grep -c 'class="partial"' "$dir/x.svg")" 2
svg "three dimensions: slices, and it says so" \
    "$plan" --mesh 2x3 --from 'S(0),S(1)' --shape 5x6x7 --svg -- \
    "slice [0-2, :, :]" "slice [3-4, :, :]" "3 dimensions: the last two are drawn" "dim 2" "0-6"
svg "uneven, cyclic, chosen and empty parts" \
    "$plan" --mesh 4 --from 'C(0,2)' --to 'S(0:1,0,5,4)' --shape 10x3 --svg -- \
    "0-1" "2-3" "8-9" "1-5" "6-9" "empty: rank 1"
svg "a scalar" "$plan" --mesh 4 --from R --shape '' --svg -- "f32[]  R" "0-3"
svg "no elements" "$plan" --mesh 2 --from 'S(0)' --shape 0x4 --svg -- "no elements"
svg "256 ranks" "$plan" --mesh 16x16 --from 'S(0),P' --to 'S(0),S(1)' --shape 64x64 --svg -- \
    "0 + ... + 15" "60-63"
svg "more parts than there is room for" "$plan" --mesh 64 --from 'S(0)' --shape 256x4 --svg -- \
    "92-95" "... dim 0 goes on to 255"
svg "16 ranks that all send to all: no arrows, a line for each" \
    "$plan" --mesh 16 --from 'S(0)' --to 'S(1)' --shape 64x64 --svg -- \
    "all-to-all 15.0 KiB" "60-63" "0 -> 1-15  64 B each"
svg "a mesh, its hosts by colour" "$plan" --mesh 2x2x4 --names pp,dp,tp --per-host 4 --svg -- \
    "mesh(pp=2,dp=2,tp=4): 16 ranks" "pp=1" "dp=0" "tp=3" "15" "a colour for each of 4 hosts"
svg "the schedule of a ring" \
    "$plan" allreduce --size 1M --mesh 8 --algorithm ring --svg -- \
    "allreduce by ring, 1.00 MiB over 8 ranks" "rank 0" "rank 7" "messages of 128 KiB" "0.00 us"
is "a ring of 8 has 14 messages and a barrier's worth of signals for each rank" \
    "$(grep -c 'marker-end="url(#head[0-7])"' "$dir/x.svg")" 112
svg "the schedule of a barrier has signals" "$plan" barrier --mesh 6 --svg -- "rank 5" \
    "barrier by direct over 6 ranks" "no data; dashed: signals"
svg "a schedule between hosts" "$plan" broadcast --size 64K --mesh 16 --per-host 4 \
    --algorithm hierarchical --svg -- \
    "broadcast by hierarchical" "rank" "15"
for file in two-nodes 128-nodes; do
    cp "$top_srcdir/conf/$file.ini" "$dir" && chmod 600 "$dir/$file.ini"
done
svg "a cluster file" "$conf" --svg "$dir/two-nodes.ini" -- "pair: 8 ranks on 2 hosts" "gpu02" \
    "10.12.0.2" "rank 7" "cpu 48-63" "mlx5_1:1" "shm" "between hosts: rc"
svg "a large cluster file" "$conf" --svg "$dir/128-nodes.ini" -- "hal: 1024 ranks on 128 hosts" \
    "node001" "... and 124 more hosts"

# ---------------------------------------------------------------- text ---
is "text in UTF-8" "$(LC_ALL=C.UTF-8 COLUMNS=28 "$plan" --mesh 2 --from P --shape 2x8 --draw)" \
"f32[2,8]  P(sum)  on mesh(2)
dim 1           0-7
dim 0 ┌────────────────────┐
      │╱╱╱╱╱╱ P(sum) ╱╱╱╱╱╱│
0-1   │╱╱╱╱╱╱╱ 0 + 1 ╱╱╱╱╱╱│
      └────────────────────┘
hatched: 2 terms; P(sum) of
them is the value"
is "text in ASCII" "$(COLUMNS=30 "$plan" --mesh 2 --from 'S(0)' --shape 2x4 --draw)" \
"f32[2,4]  S(0)  on mesh(2)
dim 1            0-3
dim 0 +----------------------+
      |                      |
0     |           0          |
      |                      |
      +----------------------+
      |                      |
1     |           1          |
      |                      |
      +----------------------+"
is "text without a locale is ASCII" "$("$plan" --mesh 2x4 --draw | LC_ALL=C grep -c '[^ -~]')" 0
is "40 columns are kept" "$(COLUMNS=40 LC_ALL=C "$plan" --mesh 2x4 --from 'S(0),P' --to 'R,S(1)' \
    --shape 8192x8192 --draw | awk 'length > 40' | wc -l)" 0
terminal() { # on a terminal, with the environment of ENV...
    env TERM=xterm LC_ALL=C.UTF-8 COLUMNS=60 "$@" script -qec \
        "$plan --mesh 2 --from 'S(0)' --shape 2x8 --draw" /dev/null </dev/null
}
if command -v script >/dev/null; then
    is "colour on a terminal" "$(terminal | grep -c $'\033\\[0;30;48;5;153m')" 3
    is "no colour with NO_COLOR" "$(terminal NO_COLOR=1 | grep -c $'\033')" 0
    is "nor on a dumb one" "$(terminal TERM=dumb | grep -c $'\033')" 0
else
    skip_test "colour on a terminal" "no script(1)"
fi
is "a schedule as text" \
    "$(LC_ALL=C "$plan" allreduce --size 1M --mesh 4 --algorithm ring --draw | grep -c 'us 128 KiB$')" 48
done_testing
