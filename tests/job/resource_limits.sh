#!/bin/bash
# resource_limits.sh - what a job says when the machine or its user sets limits
#
# Few descriptors, little address space, no memfd, no /proc, a port that is
# taken, a rank that never comes, invalid calls: each is one line with the
# remedy, at once, and nothing is left behind.
#
# Without this test, a limit of the machine could end a job with a signal, or
# with an error that names no limit.
. "$top_srcdir/tests/tap.sh"
run=$top_builddir/dtensor-run
job=$top_builddir/tests/job/limited_job
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
unset "${!DTN_@}" "${!SLURM@}"
port=$((11000 + $$ % 5000 * 4))         # as tests/support/port.h
touch began                          # other tests run at the same time

# matches CLAIM TEXT PATTERN: a bash regular expression, all of TEXT
matches() {
    if [[ $2 =~ ^($3)$ ]]; then
        ok 0 "$1"
    else
        ok 1 "$1"
        printf '%s\n' "got:" "$2" "expected:" "$3" | sed 's/^/# /'
    fi
}

# file NAME LINES...: a cluster file; LINES after its [cluster] section
file() {
    local name=$1
    shift
    printf '%s\n' '[cluster]' 'version = 1' "$@" >"$name"
}

# rank NUMBER OF JOB [NAME=VALUE...] -- ARGUMENTS...: one rank without launcher
rank() {
    local rank=$1 of=$2 name=$3 variables=()
    shift 3
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    env DTN_RANK="$rank" DTN_WORLD_SIZE="$of" DTN_LOCAL_RANK="$rank" \
        DTN_LOCAL_SIZE="$of" DTN_JOB="$name" "${variables[@]}" \
        timeout 100 "$job" "$@"
}

# -------------------------------------------------------------- descriptors ---
# From too few for one rank to enough for all: never a hang, and whoever fails
# says which limit it was, or which rank.
worded=0 enough=0 silent=
for n in 5 6 7 8 9 10 12 16; do
    out=$(timeout 100 "$run" -n 4 bash -c "ulimit -n $n; exec $job" 2>&1)
    code=$?
    if [ $code = 0 ]; then
        enough=$((enough + 1))
    elif [ $code != 124 ] && grep -q 'ulimit -n' <<<"$out"; then
        worded=$((worded + 1))
    elif [ $code = 127 ] && grep -q 'error while loading' <<<"$out"; then
        continue                 # not even its libraries could be opened
    else
        silent="$silent
ulimit -n $n: $out"
    fi
done
is "each limit of descriptors is enough, or named with ulimit -n" "$silent" ""
ok $((worded == 0 || enough == 0)) "both were seen: $worded and $enough times"
out=$(timeout 100 "$run" -n 4 bash -c "ulimit -n 8; exec $job" 2>&1)
matches "in words" "$(grep -m 1 limit <<<"$out")" \
    '.*: the limit is 8 \(raise ulimit -n, the hard limit is 8\)|.*ulimit -n.*'
for ((i = 0, told = 0; i < 8; i++)); do
    timeout 100 "$run" -n 4 bash -c "ulimit -n $((8 + i % 2)); exec $job" 2>&1 |
        grep -q 'closed its connection\|while ranks joined' || told=$((told + 1))
done
is "a child of the rank that has none left hears why, each time" "$told" 8

# Over tcp a rank needs one for each rank that it meets.
file tcp.ini '[nodes "here"]' 'hosts = localhost' 'ranks = 8' \
    '[transport]' 'intra_node = tcp' 'op_timeout = 20s'
out=$(timeout 100 "$run" -n 8 bash -c "ulimit -n 18; exec $job tcp.ini" 2>&1)
grep -q 'tcp: cannot accept the .* files (see ulimit -n)' <<<"$out"
ok $? "so is it when a rank can accept no more connections of its peers"

# ------------------------------------------------------------------- memory ---
if [ -n "$SANITIZER_CFLAGS" ]; then
    skip_test "little address space" "the sanitizers need much"
else
    out=$(timeout 100 "$run" -n 2 bash -c "ulimit -v 80000; exec $job" 2>&1)
    matches "little address space: exit 2 (ENOMEM), in words" \
        "$? $(head -1 <<<"$out")" '2 .*cannot map .*: Cannot allocate memory '\
'\(see ulimit -v, or lower \[transport\] arena\)'
    out=$(timeout 100 "$run" -n 4 bash -c "ulimit -v 2000000; exec $job" 2>&1)
    is "4 ranks share 2 GB of it" "$?|$out" "0|"
    out=$(timeout 100 "$run" -n 4 bash -c \
        "ulimit -v 2000000; exec $job --most" 2>&1)
    matches "and a tensor that does not fit names ulimit -v" \
        "$? $(grep -m 1 tensor: <<<"$out")" '2 tensor: no room for .*: the '\
'arena of this rank has 24[24]\.0 MiB, a share of half of ulimit -v, .*\(raise '\
'ulimit -v\)'
fi
out=$(timeout 100 "$run" -n 4 "$job" --most 2>&1)
case "$?|$out" in
*"control group"*) skip_test "3/4 of the memory in a tensor" "a control group's" ;;
*) is "each of 4 ranks may have a tensor of 3/4 of the memory" "$?|$out" "0|" ;;
esac
file small.ini '[nodes "here"]' 'hosts = localhost' 'ranks = 2' '[transport]' \
    'arena = 64M'
out=$(timeout 100 "$run" -n 2 "$job" --most small.ini 2>&1)
matches "a tensor larger than [transport] arena: exit 2 (ENOMEM), which limit" \
    "$? $(head -1 <<<"$out")" '2 tensor: no room for [0-9.]+ .iB: the arena '\
'of this rank has 64\.0 MiB, as \[transport\] arena says, of which '\
'6[0-9.]+ MiB are free, 6[0-9.]+ MiB in one piece \(free some, or raise '\
'\[transport\] arena\)'
out=$(timeout 100 "$run" -n 2 bash -c "ulimit -f 0; exec $job" 2>&1)
matches "no file may grow: exit 3 (ESYS), in words" "$? $(head -1 <<<"$out")" \
    '3 init: rank . on .* failed: shm: .*ulimit -f.*intra_node = tcp\)'

# -------------------------------------------------------------------- memfd ---
out=$(timeout 100 "$run" -n 2 "$job" --no-memfd 2>&1)
matches "memfd_create refused: exit 3 (ESYS), in words" \
    "$? $(head -1 <<<"$out")" '3 init: rank . on .* failed: shm: memfd_create: Operation not '\
'permitted '\
'\(set \[transport\] intra_node = tcp\)'
file tcp.ini '[nodes "here"]' 'hosts = localhost' 'ranks = 2' '[transport]' \
    'intra_node = tcp'
is "and that remedy helps" \
    "$(timeout 100 "$run" -n 2 "$job" --no-memfd tcp.ini 2>&1; echo $?)" 0

# -------------------------------------------------------------------- /proc ---
hidden="mount -t tmpfs none /proc && exec $run -n 3 $job"
if [ -n "$SANITIZER_CFLAGS" ]; then
    skip_test "without /proc a job works" "the sanitizers read it"
elif unshare -m true 2>/dev/null; then
    is "without /proc a job works" \
        "$(timeout 100 unshare -m bash -c "$hidden" 2>&1; echo $?)" 0
    file quick.ini '[nodes "here"]' 'hosts = localhost' 'ranks = 3' \
        '[transport]' 'op_timeout = 1s'
    out=$(timeout 100 unshare -m bash -c "$hidden --stop $dir/quick.ini" 2>&1)
    matches "and a rank that is stopped is named at op_timeout" \
        "$(head -1 <<<"$out")" '.* waited [1-9]\.. s for rank 2 on .*'
else
    skip_test "without /proc a job works" "unshare -m is not allowed here"
fi

# --------------------------------------------------------------------- port ---
file far.ini 'auth = none' '[nodes "all"]' 'hosts = a,b' 'addresses = 127.0.0.2,127.0.0.3' \
    'ranks = 1' '[transport]' "port = $port" 'connect_timeout = 6s'
rank 0 2 first-$$ DTN_HOST=a -- far.ini 2>first.err &
for ((i = 0; i < 1000; i++)); do
    grep -qi ":$(printf %04X "$port") " /proc/net/tcp && break
    sleep .02
done
out=$(rank 0 2 second-$$ DTN_HOST=a -- far.ini 2>&1)
is "a port in use: exit 3 (ESYS), in words, and by which job" "$? $out" "3 boot: \
port $port on 127.0.0.2 is in use: rank 0 on a of job \"second-$$\" met rank 0 on a \
of job \"first-$$\" at port $port (two jobs that start at the same time: set another \
[transport] port for one)"
wait
is "a host that never comes is named, with its port" "$(cat first.err)" \
    "boot: rank 1 on b did not join within 6.0 s (is it started? is b \
reachable on port $port?)"

# ------------------------------------------------------------ missing ranks ---
file five.ini '[nodes "here"]' 'hosts = localhost' 'ranks = 5' '[transport]' \
    'connect_timeout = 3s'
start=${EPOCHREALTIME/./}
for r in 0 1 3; do
    rank $r 5 missing-$$ -- five.ini 2>missing.$r &
done
wait
took=$(((${EPOCHREALTIME/./} - start) / 1000))
is "two of five ranks never come: the others name them, in the same words" \
    "$(sort -u missing.*)" "boot: ranks 2,4 on localhost did not join within \
3.0 s (are they started?)"
ok $((took < 2900)) "not before connect_timeout: $took ms"
is "fewer ranks started than the file has" \
    "$(timeout 100 "$run" -n 1 "$job" five.ini 2>&1 | head -1)" "dtensor-run \
started 1 ranks (DTN_WORLD_SIZE), five.ini describes 5: use dtensor-run -n 5"

start=${EPOCHREALTIME/./}
out=$(timeout 80 "$run" -n 3 bash -c \
    "[ \$DTN_RANK != 1 ] || export DTN_CLUSTER=none.ini; exec $job" 2>&1)
took=$(((${EPOCHREALTIME/./} - start) / 1000))
ok $(($(grep -c 'none.ini: error: cannot open' <<<"$out") != 1 ||
    $(grep -c '^dtensor-run: rank 1 (pid' <<<"$out") != 1)) \
    "a rank without its file: the launcher names it and ends the others"
ok $((took > 40000)) "not at connect_timeout, a minute later: $took ms"

# -------------------------------------------------------------- wrong calls ---
is "wrong calls are EINVAL in words, and leave the context good" \
    "$(timeout 100 "$run" -n 2 "$job" --wrong 2>&1)" \
    'EINVAL mesh: shape 3x2 needs at least 3 ranks, but the world has 2 (start more ranks, or give smaller sizes)
EINVAL mesh: size 0 of dimension 0; expected 1 or more
EINVAL mesh: names "dp" do not fit 2 dimensions (give one for each, or NULL)
EINVAL mesh: dimension name "dp" is given twice in "dp,dp"
EINVAL mesh: no mesh "word" (there are: world)
EINVAL placements: word 1 of "S(2)" is "S(2)", but the tensor has 2 dimensions
EINVAL placements: "S(0),R" has 2, but the mesh has 1 dimensions (give one for each)
EINVAL placements: word 1 of "Q" is "Q"; expected R, S(dimension), SS(dimension,factor), C(dimension,block), HT(dimension) or P(reduction)
EINVAL spec: size -1 of tensor dimension 1; expected 0 or more
EINVAL spec: f32[4611686018427387903,8] has over 2^63 bytes (a size of 0 counts as 1)
EINVAL spec: 9 tensor dimensions; expected 0 to 8
EINVAL full_tensor: 60 bytes, but the whole is 64: f32[4,4]  R  on world(world=2)
EINVAL allreduce: in and out overlap (they may only be in place as dtensor_allreduce(3) says)
EINVAL allreduce: no reduction band for f32 (bit operations need integers; not all types have an average or an order)
EINVAL broadcast: root 7 is not a position of the mesh; expected 0 to 1
EINVAL allreduce: the buffer `in` is NULL, but 12 bytes are to be sent
0 '

# ---------------------------------------------------------- nothing is left ---
"$run" -n 3 "$job" --stop >stopped.out 2>&1 &
launcher=$!
for ((i = 0; i < 2000; i++)); do
    mapfile -t ranks < <(pgrep -f "^$job --stop" | sed 's,.*,/proc/&/status,')
    grep -qs '^State:.T' /dev/null "${ranks[@]}" && break
    sleep .01
done
{ kill -KILL $launcher && wait $launcher; } 2>/dev/null
for ((i = 0; i < 2000; i++)); do
    pgrep -f "^$job --stop" >/dev/null || break
    sleep .01
done
is "after SIGKILL of the launcher no rank is left" "$(pgrep -af "^$job --stop")" ""
is "nor anything in /dev/shm" \
    "$(find /dev/shm -name '*d*t*n*' -newer began 2>/dev/null)" ""
is "nor a socket" "$(grep -aE '@dtensor/[0-9]+/(missing|first|second)-'$$ \
    /proc/net/unix)" ""
done_testing
