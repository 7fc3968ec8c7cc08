#!/bin/bash
# conf.sh - dtensor-conf: exit status, findings, views
#
# Good and bad files are shown and checked, with the lines that must be
# printed.
#
# Without this test, dtensor-conf could call a file good that a job refuses.
. "$top_srcdir/tests/tap.sh"
tools_find
conf=$tools/dtensor-conf
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cp "$top_srcdir"/conf/*.ini "$dir" && cd "$dir" || exit 99
umask 077
chmod 600 ./*.ini

# run ARGUMENT...: sets out, err and status
run() {
    "$conf" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}

run laptop.ini two-nodes.ini 128-nodes.ini
is "good files are summed up in a line each" "$status|$err|$out" \
"0||laptop.ini: ok: 4 ranks on 1 node; meshes world(dp=2,tp=2)
two-nodes.ini: ok: 8 ranks on 2 nodes; meshes world(pp=2,tp=4), stage0(tp=4)
128-nodes.ini: ok: 1024 ranks on 128 nodes; meshes world(pp=16,dp=8,tp=8), first-stage(dp=8,tp=8), last-stage(dp=8,tp=8)"

sed 's/^ranks .*/rank = 4/; s/^\[seed\]/[sead]/' two-nodes.ini >bad.ini
run bad.ini laptop.ini
is "a bad file is exit status 2, its findings on stderr; the next is checked" \
    "$status|$err|$out" \
'2|bad.ini:17: error: unknown key "rank" in [nodes]; did you mean "ranks"?
bad.ini:48: error: unknown section "sead"; did you mean "seed"?|laptop.ini: ok: 4 ranks on 1 node; meshes world(dp=2,tp=2)'

printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' 'hosts = @step' \
    'hca = mlx5_[0-3]:1' '[mesh "world"]' 'dims = dp=2, tp=4' '[transport]' \
    'port = 18000' >step.ini
run step.ini
is "@step on a login node: all but the hosts is checked" "$status|$err|$out" \
"0|step.ini:4: warning: hosts: @step is known under srun only; the hosts, and \
what depends on how many there are, were not checked|step.ini: ok: ranks and \
nodes of the Slurm step; meshes world(dp=2,tp=4)"
run --show ranks step.ini
is "and has no ranks to show" "$status|$out|${err##*$'\n'}" "2||step.ini: hosts = \
@step: ranks and hosts are known under srun only (run it there)"
sed 's/18000/80/; /^dims/d; /^hca/a ranks = 8' step.ini >bad.ini
run bad.ini
is "what is wrong elsewhere in it is found" "$status|$(grep -c warning <<<"$err")|$(
    grep error <<<"$err")" "2|1|bad.ini:7: error: [mesh \"world\"] has no \
\"dims\"; expected dims = name=number, such as dp=2, tp=4, or a parent and what \
to select
bad.ini:9: error: port: 80 is out of range; expected 1024 to 65535"

run none.ini
is "no such file" "$status|$err|$out" \
    "2|none.ini: error: cannot open: No such file or directory|"

run --show ranks two-nodes.ini
is "--show ranks" "$status|$out" "0|   rank  host   local   gpu  hca         cpus
      0  gpu01      0     -  mlx5_0:1    0-15
      1  gpu01      1     -  mlx5_0:1    16-31
      2  gpu01      2     -  mlx5_1:1    32-47
      3  gpu01      3     -  mlx5_1:1    48-63
      4  gpu02      0     -  mlx5_0:1    0-15
      5  gpu02      1     -  mlx5_0:1    16-31
      6  gpu02      2     -  mlx5_1:1    32-47
      7  gpu02      3     -  mlx5_1:1    48-63"

run --show hosts two-nodes.ini
is "--show hosts" "$status|$out" "0|host   address    ranks
gpu01  10.12.0.1  0-3
gpu02  10.12.0.2  4-7"

run --show=mesh --rank 6 two-nodes.ini
is "--show mesh --rank 6: outside stage0 it stands nowhere" "$status|$out" \
"0|mesh world(pp=2,tp=4)
      6  pp=1 tp=2
mesh stage0(tp=4)"

run -s mesh laptop.ini
is "--show mesh" "$status|$out" "0|mesh world(dp=2,tp=2)
      0  dp=0 tp=0
      1  dp=0 tp=1
      2  dp=1 tp=0
      3  dp=1 tp=1"

run -s seeds -r 700 128-nodes.ini
is "--show seeds --rank 700: pipeline stage 10" "$status|$out" \
    "0|   rank  seed
    700  20262120"

run --rank 1023 128-nodes.ini
is "--rank 1023" "$status|$out" "0|rank 1023 is local rank 7 of 8 on node132; \
meshes world(pp=15,dp=7,tp=7), last-stage(dp=7,tp=7)"

run --show ranks 128-nodes.ini
is "1024 ranks are 1024 rows and a heading" "$(wc -l <out)" 1025
is "the last of them" "$(tail -n1 out)" \
    "   1023  node132      7     -  mlx5_9:1    numa"

run --show digest laptop.ini
is "--show digest is a line for each key, and the digest" \
    "$status|$(sed '$d' out | grep -cvE '^\[[^]]+\] [^ ]+ = ')|$(tail -n1 out |
        sed -E 's/ [0-9a-f]{16}$/ .../')" "0|0|digest ..."
for section in cluster transport seed tuning redistribute; do
    grep -q "^\[$section\] " out || echo "$section"
done >missing
is "of every section, given or not" "$(<missing)" ""
digest=$(tail -n1 out)
sed 's/;.*//; s/ranks = 4/ranks=4/; /^$/d' laptop.ini >plain.ini
run --show digest plain.ini
is "which comments and blanks do not change" "$(tail -n1 out)" "$digest"
sed 's/base = 1234/base = 1235/' laptop.ini >other.ini
run --show digest other.ini
[ "$(tail -n1 out)" != "$digest" ]
ok $? "and a seed does"

cat laptop.ini - >planned.ini <<'END'
[plan "mlp"]
mesh = world
dim = tp
layers.*.down = rowwise output=S(1)
layers.*.up = colwise
. = prepare input=R,-
END
run --show plan planned.ini
is "--show plan" "$status|$err|$out" "0||plan mlp: on tp of mesh world, 2 ranks
    .              prepare   input R,-, output as it comes
    layers.*.down  rowwise   input S(-1) or R, output S(1); linear: weight \
S(1), bias R; embedding: weight S(0)
    layers.*.up    colwise   input R, output S(-1); linear: weight S(0), bias \
S(0); embedding: weight S(1)"
run --show plan laptop.ini
is "a file without a plan says how to write one" "$status|$out|$err" '2||'\
'laptop.ini: no plan to show: it has no [plan] section (write one such as '\
'[plan "mlp"] with layers.*.up = colwise)'
run --show digest planned.ini
planned=$(tail -n1 out)
sed 's/^layers.*up.*/layers.*.up=colwise ; the same/; /^\. = /d' planned.ini \
    >other.ini
echo '. = prepare   input=R,-' >>other.ini
run --show digest other.ini
is "plans that mean the same have one digest" "$(tail -n1 out)" "$planned"
sed 's/colwise/colwise output=R/' planned.ini >other.ini
run --show digest other.ini
[[ $(tail -n1 out) != "$planned" && $planned != "$digest" ]]
ok $? "others have others"

cat >wrong.ini <<'END'
[cluster]
version = 1
[nodes "a"]
hosts = localhost
ranks = 4
[mesh "world"]
dims = dp=2, tp=2
[plan "one"]
mesh = word
up = colwize
down = rowwise output=S(9)
act = colwise output=P
norm = sequence dim=8
out = rowwise input=R
head = prepare
a..b = colwise
layers.0.up = colwise
layers.*.up = rowwise
[plan "two"]
mesh = world
up = rowwise output=R,R
[plan "three"]
mesh = world
dim = pp
up = columns
[plan "four"]
dim = tp
END
run wrong.ini
is "all that is wrong with the plans of a file, in one run" "$status|$out|$err" \
    '2||wrong.ini:9: error: mesh: no mesh "word"; did you mean "world"?
wrong.ini:10: error: up: no style "colwize"; did you mean "colwise"?
wrong.ini:11: error: down: no layout "S(9)"; expected R, S(dim), SS(dim,factor), C(dim,block), HT(dim), P or P(reduction), with dim from -8 to 7
wrong.ini:12: error: act: output=P: the output of colwise is no term; expected R or S
wrong.ini:13: error: norm: dim=8: not a dimension (expected 0 to 7, or -1 to -7)
wrong.ini:14: error: out: rowwise has no option "input=R" (expected output=LAYOUT)
wrong.ini:15: error: head: prepare without input=LAYOUTS or output=LAYOUTS
wrong.ini:16: error: bad pattern "a..b"; expected names or wildcards (* ? [0-3]) of 1 to 33 bytes joined by ".", or "." for the model itself
wrong.ini:18: error: layers.*.up: its modules have a style by "layers.0.up" on line 17; expected one style for each module
wrong.ini:20: error: mesh: "world" has 2 dims; expected dim = one of them
wrong.ini:21: error: up: "R": too many or too long layouts (expected at most 1)
wrong.ini:24: error: dim: mesh "world" has no dim "pp"; did you mean "dp"?
wrong.ini:25: error: up: no style "columns"; expected colwise, rowwise, sequence or prepare
wrong.ini:26: error: [plan "four"] has 0 entries; expected 1 to 1024 of PATTERN = STYLE, such as layers.*.up = colwise
wrong.ini:27: error: dim: of no mesh; expected mesh = the name of a mesh'

run --show seeds two-nodes.ini laptop.ini
is "views of several files say which is which" \
    "$(grep -n ':$' out | tr '\n' ' ')" "1:two-nodes.ini: 11:laptop.ini: "

# ---------------------------------------------------------- the fabric ---
run --show devices
is "--show devices says what may be locked, and that nothing is wrong" \
    "$status|$err|$(grep -c '^memory that may be locked: ' out)" "0||1"
run --show devices laptop.ini
is "and takes no file" "$status|$(head -1 err)" \
    "2|dtensor-conf: devices are this machine's, not a file's: leave the file out"
run --fabric laptop.ini two-nodes.ini
is "--fabric takes one file" "$status|$(head -1 err)" \
    "2|dtensor-conf: --fabric takes one file, not also two-nodes.ini"
launch=$top_builddir/dtensor-run
cat >fabric.ini <<'INI'
[cluster]
version = 1
[nodes "here"]
hosts = localhost
ranks = 3
INI
sed '$a[transport]\nintra_node = rc' fabric.ini >rc.ini
sed '/^ranks/ahca = nosuch_0:1' rc.ini >hca.ini
chmod 600 fabric.ini rc.ini hca.ini
"$launch" -n 3 "$conf" --fabric fabric.ini >out 2>err
is "--fabric: rank 0 shows every rank, and all is well without rc" \
    "$?|$(<err)|$(grep -cE '^ +[0-2]  localhost  ' out)|$(tail -n1 out | grep -o ';.*')" \
    "0||3|; the cluster file does not ask for it"
"$launch" -n 3 "$conf" --fabric hca.ini >out 2>err
is "--fabric: a device that is not there is exit status 2, said once" \
    "$?|$(grep -c '^ranks 0-2: verbs: ' out)|$(tail -n1 out)" \
    "2|1|3 ranks: none fit for rc; the cluster file asks for it"
sed 's/^ranks.*/&\ngid_index = 77/' rc.ini >gid.ini
(   # one rank has another file: the bootstrap says so, no table
    "$launch" -n 3 sh -c '[ "$DTN_RANK" = 2 ] && f=gid.ini || f=rc.ini
        exec "$0" --fabric $f' "$conf" >out 2>err
    echo $? >code
)
is "--fabric: a rank with another file is named, as in every job" \
    "$(<code)|$(grep -c 'rank 2' err | sed 's/[1-9].*/named/')|$(wc -l <out)" \
    "2|named|0"

run --template
cp out mine.ini && run mine.ini
is "the template is a good file" "$status|$err|$out" \
    "0||mine.ini: ok: 4 ranks on 1 node; meshes world(world=4)"
sed 's/^;\([[a-z]\)/\1/; s/node\[001-064\]-ib0/localhost/' mine.ini >all.ini
run all.ini
is "also when nothing in it is a comment any more" "$status|$err|$out" \
    "0||all.ini: ok: 4 ranks on 1 node; meshes world(pp=2,tp=2)"

run --rank 4 laptop.ini
is "no such rank" "$status|$err|$out" \
    "2|laptop.ini: no rank 4 (there are 0 to 3)|"
run --rank -1 laptop.ini
is "a rank is a number" "$status|$err|$out" \
    "2|dtensor-conf: not a rank: -1
Try 'dtensor-conf --help' for more information.|"
run --show all laptop.ini
is "no such view" "$status|$err|$out" "2|dtensor-conf: no such view: all; expected summary, ranks, hosts, mesh, seeds, digest, plan or devices
Try 'dtensor-conf --help' for more information.|"
run --frobnicate
is "an unknown long option" "$status|$err|$out" \
    "2|dtensor-conf: --frobnicate: no such option
Try 'dtensor-conf --help' for more information.|"
run -xs ranks laptop.ini
is "an unknown letter" "$status|$err|$out" "2|dtensor-conf: -x: no such option
Try 'dtensor-conf --help' for more information.|"
run --rank
is "a missing argument" "$status|$err|$out" \
    "2|dtensor-conf: an argument is missing: --rank
Try 'dtensor-conf --help' for more information.|"
for pair in "--draw --show=ranks" "--show=hosts --svg" "--doctor --fabric" \
    "--draw --svg" "--env --show=ranks" "--topology --template"; do
    read -r first second <<<"$pair"
    # shellcheck disable=SC2086 # two options
    run $pair laptop.ini
    is "$pair: only one can be shown" "$status|$err|$out" \
        "2|dtensor-conf: ${first%=*} and ${second%=*} do not go together
Try 'dtensor-conf --help' for more information.|"
done
for other in --env --topology --template; do
    run $other laptop.ini
    is "$other takes no file" "$status|$err|$out" \
        "2|dtensor-conf: --env, --topology and --template are of no file: leave it out
Try 'dtensor-conf --help' for more information.|"
done
for other in --doctor --fabric --draw --show=devices --env; do
    run --rank 1 $other laptop.ini
    is "--rank and $other" "$status|$err|$out" \
        "2|dtensor-conf: --rank goes with a view of a file
Try 'dtensor-conf --help' for more information.|"
done
run
is "no file" "$status|$err|$out" "2|dtensor-conf: no file to check
Try 'dtensor-conf --help' for more information.|"

run --help
ok "$status" "--help is no error"
is "and fits in 80 columns" "$(grep -cE '.{80}' out)" 0
words=$(grep -oE '^  -., --[a-z]+' out | sed 's/.*--//')
for word in $words; do
    grep -q "Fl -$word" "$top_srcdir/man/dtensor-conf.1" ||
        grep -qF "\\-$word" "$top_srcdir/man/dtensor-conf.1"
    ok $? "--$word is in the manual"
done
run --version
[[ $status = 0 && $out =~ ^dtensor-conf\ [0-9]+\.[0-9]+\.[0-9]+\ \( ]]
ok $? "--version"

if [ -w /dev/full ]; then
    "$conf" --show ranks laptop.ini >/dev/full 2>"$dir/err"
    is "a full disk is an error" "$?|$(<"$dir/err")" \
        "2|dtensor-conf: cannot write: No space left on device"
else
    skip_test "a full disk is an error" "no /dev/full"
fi

# The manual names every section and key, and its example is a good file.
page=$top_srcdir/man/dtensor-cluster.5
for key in $("$conf" --show digest two-nodes.ini |
    sed -nE 's/^\[(cluster|transport|seed|tuning|redistribute)\] ([a-z_]+) =.*/\2/p'); do
    grep -q "^\.It Cm $key\b" "$page" || echo "$key"
done >missing
is "every key is in dtensor-cluster(5)" "$(<missing)" ""
sed -n '/^\.Bd -literal/,/^\.Ed/p' "$page" | sed '/^\./d; s/\\e/\\/g' >example.ini
run example.ini
is "the example of dtensor-cluster(5) is good" "$status|$err" "0|"
if command -v mandoc >/dev/null; then
    is "mandoc has nothing against the manual" \
        "$(mandoc -T lint -W warning "$page" "$top_srcdir/man/dtensor-conf.1")" ""
else
    skip_test "mandoc" "not installed"
fi

done_testing
