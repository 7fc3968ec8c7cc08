#!/bin/bash
# misuse.sh - what the tools say to bad input
#
# A table of command lines, each with its exit code and words: unknown options,
# files that cannot be read or written, terminals of 40 columns, closed pipes,
# no locale, no Slurm.
#
# Without this test, a mistake could end in a trace, silence, or success.
. "$top_srcdir/tests/tap.sh"
bin=$(cd "$top_builddir" && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
for name in "${!SLURM@}"; do unset "$name"; done
unset LC_ALL LC_CTYPE LANG COLUMNS DTN_CLUSTER DTN_FAULT DTN_LOG
cp "$top_srcdir"/conf/{two,128}-nodes.ini "$dir"
cd "$dir" || exit 99
echo '{ "results": 1 }' >no-results.json
echo '{ "results": [' >cut.json
echo 'nonsense' >bad.ini
printf '[cluster]\nversion = 1\n[nodes "a"]\nhosts = @step\nranks = 1\n' >step.ini
chmod 600 ./*.ini

# code | words, in one line of standard error but for the hint | command
while IFS='|' read -r code words command; do
    read -ra argv <<<"$command"
    timeout 60 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >out 2>err </dev/null
    is "$command: $words" \
        "$? $(grep -cF -- "$words" err) $(grep -vc '^Try ' err)" "$code 1 1"
done <<'TABLE'
2|did you mean "--iters"?|bench --iter 3 --itters 3 allreduce
2|-Y: no such option|bench -Y allreduce
2|no test "allreduxe"; did you mean "allreduce"?|bench allreduxe
2|dtype: unknown "f23"|bench -d f23 allreduce
2|x.json: cannot write it|bench allreduce -e 8 --json /nonexistent/x.json
2|x.csv: cannot write it|bench allreduce -e 8 --csv /nonexistent/x.csv
2|x.svg: cannot write it|bench allreduce -e 8 --svg /nonexistent/x.svg
2|--baseline: unable to open none.json: No such file|bench allreduce -e 8 --baseline none.json
2|--baseline cut.json: line|bench allreduce -e 8 --baseline cut.json
2|--baseline no-results.json: it has no results|bench allreduce -e 8 --baseline no-results.json
2|none.ini|bench allreduce -e 8 -C none.ini
2|none.ini|bench --dry-run allreduce -C none.ini
2|bad.ini:1|bench --dry-run allreduce -C bad.ini
2|@step|bench allreduce -e 8 -C step.ini
2|@step|bench --dry-run allreduce -C step.ini -m nowhere
2|did you mean "--shape"?|plan --mesh 2 --shap 4 --sharp 4 --from R --to R
2|-Y: no such option|plan -Y
2|an argument is missing|plan --mesh
2|ring is an algorithm; did you mean allreduce --algorithm ring|plan ring --size 1M --mesh 8
2|did you mean "allreduce"?|plan allreduxe --size 1M --mesh 8
2|none.ini|plan --mesh world --cluster none.ini --from R --to R --shape 4
2|@step|plan --mesh world --cluster step.ini --from R --to R --shape 4
2|--svg and --draw do not go together|plan --mesh 2 --svg --draw
2|--swg: no such option; did you mean "--svg"?|conf --swg step.ini
2|-Y: no such option|conf -Y
2|no such view: rank; did you mean "ranks"?|conf --show rank step.ini
2|none.ini|conf --svg none.ini
2|none.ini: error: cannot open: No such file|conf none.ini
2|none.ini: error: cannot open: No such file|conf --fabric none.ini
2|bad.ini:1: error:|conf --doctor bad.ini
2|.: error: is a directory; expected a regular file|conf .
2|no program to run|run -n 2
2|--nrank: no such option; expected one of --ranks, --bind, --label|run --nrank 2 true
2|-Y: no such option|run -Y true
2|none.ini: cannot read it: No such file|run -n 2 -C none.ini true
2|--json /nonexistent/x.json: cannot make it|run --json /nonexistent/x.json true
127|cannot run ./none: No such file|run -n 1 ./none
126|cannot run ./bad.ini: Permission denied|run -n 1 ./bad.ini
TABLE

timeout 60 "$bin/dtensor-conf" --svg step.ini >out 2>err
is "the picture of a file whose ranks are those of a step: exit 2" \
    "$? $(grep -c 'nothing to draw' err) $(wc -c <out)" "2 1 0"

# Ranks that no Slurm step has started: the file is named, and what to do.
timeout 60 "$bin/dtensor-run" -n 2 -C step.ini "$bin/dtensor-bench" allreduce -e 8 >out 2>err
is "a file for srun below dtensor-run: exit 2" "$? $(wc -c <out)" "2 0"
is "which names the file and srun" "$(grep -c 'step\.ini.*@step.*srun' err)" 1

# Nobody reads: no complaint, and not success; also where SIGPIPE is ignored, as
# below some daemons.
# shellcheck disable=SC2094 # the reader goes before anybody writes
mkfifo unread && exec 8<>unread 9>unread 8>&-
for command in "bench --local 2 allreduce -e 1M -n 2000" "bench --local 2 --dry-run all -f 2 -e 1G" \
    "plan --mesh 32x32 --draw" "plan --mesh 8 --from R --to S(0) --shape 8x8 --layout" \
    "conf --env" "conf --template" "conf --help" "run --help"; do
    read -ra argv <<<"$command"
    timeout 60 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >&9 2>err
    is "$command without a reader ends quietly" "$? $(cat err)" "141 "
    (trap '' PIPE; exec timeout 60 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >&9 2>err)
    is "also where SIGPIPE is ignored" "$? $(cat err)" "141 "
done
exec 9>&-
if [ -w /dev/full ]; then
    for command in "bench allreduce -e 8 -n 2" "plan --mesh 2 --svg" "plan --mesh 2 --draw" \
        "conf --env"; do
        read -ra argv <<<"$command"
        timeout 60 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >/dev/full 2>err
        is "$command >/dev/full is no success" \
            "$(($? == 2 || $? == 3)) $(grep -c 'cannot write' err)" "1 1"
    done
fi

# 40 columns, and a locale that is not installed.
for command in "plan --mesh 2x4 --draw" "plan --mesh 2x4 --from S(0),P --to R,S(1) --shape 64x64 --draw" \
    "plan allreduce --size 1M --mesh 4 --draw" "conf --draw two-nodes.ini" \
    "conf --draw 128-nodes.ini"; do
    read -ra argv <<<"$command"
    COLUMNS=40 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >out 2>err
    is "$command fits 40 columns" "$? $(awk 'length > 40' out | wc -l) $(cat err)" "0 0 "
    env LC_ALL=xx_XX.ISO-8859-1 "$bin/dtensor-${argv[0]}" "${argv[@]:1}" >out 2>err
    is "$command is ASCII in an unknown locale" "$? $(LC_ALL=C grep -c '[^ -~]' out) $(grep -v setlocale err)" "0 0 "
done
COLUMNS=40 LC_ALL=xx_XX "$bin/dtensor-bench" --local 2 --mesh 2 -b 1K -e 1K -n 2 \
    --shape 64x64 --draw allreduce redistribute >out 2>err
is "what dtensor-bench draws fits 40 columns, in ASCII" \
    "$? $(grep -v setlocale err) $(LC_ALL=C grep -c '[^ -~]' out) $(
        grep '^# .*[|+]' out | awk 'length > 40 { wide++ } END { print (NR > 20), wide + 0 }')" \
    "0  0 1 0"
for columns in 1 0 -3 nonsense 99999999999; do
    COLUMNS=$columns "$bin/dtensor-plan" --mesh 2x4 --from 'S(0),P' --to 'R,S(1)' \
        --shape 64x64 --draw >out 2>err
    is "COLUMNS=$columns is no reason to fail" \
        "$? $(head -c 6 out) $(cat err)" "0 before "
done
COLUMNS=40 LC_ALL=xx_XX "$bin/dtensor-run" -n 2 sh -c 'exit 3' >out 2>err
is "dtensor-run says in 40 columns and an unknown locale what it says else" \
    "$? $(grep -c '^dtensor-run: rank [01] (pid [0-9]*) exited with code 3$' err)" "3 1"
done_testing
