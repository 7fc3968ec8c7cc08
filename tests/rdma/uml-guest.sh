#!/bin/bash
# uml-guest.sh - what two guests do for check-uml.sh, the same script in both
#
# Guest N is rank N - 1 and host nodeN.  A job is one rank in each; its output
# is NAME.N and its exit status NAME.rc.N, in $OUT, where both guests read what
# both wrote.  Guest 1 makes the claims.
# shellcheck disable=SC1091 # made at run time
. "$OUT/env"
. "$top_srcdir/tests/tap.sh"
me=$GUEST_ID other=$((3 - GUEST_ID))
export LD_LIBRARY_PATH=$top_builddir/.libs
export DTN_RANK=$((me - 1)) DTN_WORLD_SIZE=2 DTN_LOCAL_RANK=0 DTN_LOCAL_SIZE=1
export DTN_JOB=uml
steady=$top_builddir/tests/rdma/steady
bench=$top_builddir/.libs/dtensor-bench

# meet: both guests are here
meets=0
meet() {
    meets=$((meets + 1))
    : >"meet.$meets.$me"
    until [ -e "meet.$meets.$other" ]; do sleep .01; done
}

# cluster LINE...: the cluster file of the jobs to come; lines for [transport]
cluster() {
    printf '%s\n' '[cluster]' 'version = 1' 'name = uml' '[nodes "guest"]' \
        'hosts = node[1-2]' 'addresses = 10.77.0.[1-2]' 'ranks = 1' \
        'hca = rxe0:1' ${gid:+"gid_index = $gid"} '[transport]' \
        'inter_node = rc' 'connect_timeout = 20s' "$@" >"cluster.$me.ini"
    export DTN_CLUSTER=$OUT/cluster.$me.ini
}

# A cluster that gives a peer up only by op_timeout, since 7 retries mean for ever
# on this device.  On a busy machine a guest can stand still for longer than the
# two seconds after which a peer usually counts as dead.
forgiving() { cluster 'retry_count = 7' 'op_timeout = 20s' "timeout = $1" "${@:2}"; }

# patient: where no packet is lost, a repeat is never needed.  soon: where
# packets are lost, repeats come early.  Timed faults hit messages of one packet.
patient=18 soon=12 one_packet=4096

# start NAME COMMAND...: begin a job       finish: wait for both its ranks
start() {
    name=$1
    shift
    "$@" >"$name.$me" 2>&1 </dev/null &
    pid=$!
}

finish() {
    wait "$pid" 2>/dev/null
    echo $? >"$name.rc.$me"
    meet
}

# claim STATUS CLAIM: guest 1 prints it, and the output of a job that failed
claim() {
    [ "$me" = 1 ] || return 0
    ok "$@"
    [ "$1" -ne 0 ] || return 0
    tail -n 5 "$name.1" "$name.2" | cut -c 1-300 | sed 's/^/# /'
}

both_good() { [ "$(cat "$name.rc.1" "$name.rc.2" | tr '\n' ' ')" = '0 0 ' ]; }

# field NAME: of the last line of steady, in this guest or that of $of
field() { sed -n "s/^calls=.*/ &/; s/.* $1=\([^ ]*\).*/\1/p" "$name.${of:-$me}"; }

# in_mid_run: the ranks have made calls, and some more
in_mid_run() {
    until grep -sq -e '^steady' -e '^calls' "$name.$me"; do sleep .01; done
    sleep .2
}

netem() { tc qdisc replace dev vec0 root netem "$@"; }
fair() { tc qdisc del dev vec0 root; }

# ----------------------------------------------------------------- exact ---

exact() {
    local program test algorithm
    addresses
    forgiving $patient
    for program in coll/test_coll tensor/test_tensor; do
        test=${program#*/}
        start "$test" "$top_builddir/tests/$program" member
        finish
        both_good
        claim $? "$test: $(sed -n 's/^ok 1 - //p' "$test.1")"
    done
    for algorithm in direct ring tree; do
        forgiving $patient '[tuning]' "allreduce = 0-inf:$algorithm" \
            "broadcast = 0-inf:$algorithm"
        start "bench-$algorithm" "$bench" all -d all -b 8 -e 1M -f 64 -n 2 -w 1
        finish
        both_good
        claim $? "dtensor-bench all, by $algorithm: every result is right"
    done
}

# Every address that the device has.
addresses() {
    local gid
    for gid in 0 1; do
        forgiving $patient
        start "gid-$gid" "$steady" .5
        finish
        both_good
        claim $? "gid_index = $gid: $(cat /sys/class/infiniband/rxe0/ports/1/gids/$gid)"
    done
}

# --------------------------------------------------------------- weather ---

weather() {
    local sky
    forgiving $patient
    for sky in 'delay 1ms' 'duplicate 5%'; do
        under "$sky"
    done
    forgiving $soon
    for sky in 'loss 1%' 'loss 5%' 'corrupt 1%' 'delay 2ms reorder 20% 50%' \
        'loss 1% delay 1ms duplicate 1% corrupt 0.5%'; do
        under "$sky"
    done
}

# under SKY
under() {
    # shellcheck disable=SC2086 # words
    netem $1
    meet
    start weather "$steady" 2
    finish
    fair
    meet
    both_good && [ "$(field calls)" -ge 20 ]
    claim $? "netem $1: connected, and $(field calls) calls of up to 2 MiB are \
exact (the longest took $(field gap) ms)"
}

# ---------------------------------------------------------------- faults ---

# expected RETRIES TIMEOUT: ms from the last answer to the error.  A try is at
# least two jiffies of the guest, 20 ms, whatever the timeout.
expected() {
    awk -v r="$1" -v t="$2" 'BEGIN {
        try = 4.096e-3 * 2 ^ t
        printf "%d", (r + 1) * (try > 20 ? try : 20)
    }'
}

# named RANK: the failure is EPEER for that rank, and names its host, the
# device and both GIDs
named() {
    [ "$(field code)" = EPEER ] && [ "$(field rank)" = "$1" ] &&
        grep -q "text=.*rank $1.*node$(($1 + 1)).*rxe0.*10\.77\.0\..*10\.77\.0\." \
            "$name.${of:-$me}"
}

# By default a peer is given up after 7 x 4.096 us x 2^16, in ms; slack is what a
# busy machine may add.
given_up=1879 slack=750

# in_time LEAST MOST: how long the error took, in both guests
in_time() {
    local took of
    for of in 1 2; do
        took=$(field after)
        [ "$took" -ge "$1" ] && [ "$took" -le "$2" ] || return
    done
}

# silence RETRIES TIMEOUT: nothing that guest 2 sends arrives any more.  Three
# tries, as a guest on a busy machine may stand still for seconds.
silence() {
    local want least most try of
    want=$(expected "$1" "$2")
    least=$((want * $1 / ($1 + 1) / 2)) most=$((want + want / 4 + slack))
    cluster "retry_count = $1" "timeout = $2"
    for try in 1 2 3; do
        start "silence-$1-$2-$try" "$steady" 30 $one_packet
        in_mid_run
        [ "$me" = 1 ] || netem loss 100%
        finish
        [ "$me" = 1 ] || fair
        meet
        ! in_time $least $most || break
    done
    for of in 1 2; do
        named $((2 - of)) && [ "$(field after)" -ge "$least" ] &&
            [ "$(field after)" -le $most ]
        claim $? "retry_count $1, timeout $2, host 2 falls silent: rank \
$((of - 1)) has EPEER with all names after $(field after) ms (expected $want)"
    done
}

faults() {
    silence 3 8
    silence 3 12
    silence 1 14
    silence 3 14
    silence 6 14
    silence 3 16
    outage
    stopped
    killed
    patient
}

outage() {
    forgiving $soon
    start outage "$steady" 3 $one_packet
    in_mid_run
    if [ "$me" = 2 ]; then
        netem loss 100%
        sleep .2
        fair
    fi
    finish
    both_good && [ "$(field gap)" -ge 100 ]
    claim $? "an outage of 200 ms or more is survived (longest call $(field gap) ms)"
}

stopped() {
    forgiving $patient
    start stopped "$steady" 4
    in_mid_run
    if [ "$me" = 2 ]; then
        kill -STOP "$pid"
        sleep 2
        kill -CONT "$pid"
    fi
    finish
    both_good && [ "$(field gap)" -ge 1900 ]
    claim $? "a rank stopped for 2 s is waited for (longest call $(field gap) ms)"
}

killed() {
    cluster
    start killed "$steady" 30 $one_packet
    in_mid_run
    [ "$me" = 1 ] || kill -KILL "$pid"
    finish
    named 1 && [ "$(field after)" -le $((given_up + 3 * slack)) ]
    claim $? "a rank killed: rank 0 has EPEER with all names after \
$(field after) ms"
}

patient() {
    cluster 'retry_count = 7' 'op_timeout = 2s'
    start patient "$steady" 30 $one_packet
    in_mid_run
    [ "$me" = 1 ] || netem loss 100%
    finish
    [ "$me" = 1 ] || fair
    meet
    [ "$(field code)" = ETIME ] && [ "$(field rank)" = 1 ] &&
        [ "$(field after)" -le 6000 ]
    claim $? "retry_count 7, host 2 falls silent: ETIME at op_timeout, 2 s, \
after $(field after) ms"
}

# ------------------------------------------------------------- lost host ---

lost_host() {
    cluster
    start lost "$steady" 30 $one_packet
    in_mid_run
    [ "$me" = 2 ] || : >kill.2
    wait "$pid"
    named 1 && [ "$(field after)" -le $((given_up + 3 * slack)) ]
    claim $? "host 2 killed: rank 0 has EPEER with all names after \
$(field after) ms"
}

# ----------------------------------------------------------------- speed ---

# Rounds that measure one after the other, so that what else the host does hits
# all alike; not a test.  bound says what the device allows if both ranks write
# at once, by libibverbs alone, best and median.
speed() {
    local round call
    cluster
    for round in 1 2 3; do
        perftest ib_write_lat 8 -n 2000
        perftest ib_write_bw 1048576 -n 300 -t 16
        start bound "$top_builddir/tests/rdma/bound" "meeting.$round" "$me"
        finish
        [ "$me" = 2 ] || sed "s/^/$round /" bound.1
        for call in 'barrier -b 8 -e 8' 'allreduce -b 8 -e 2M -f 262144' \
            'broadcast -b 8 -e 4K -f 512' 'redistribute -b 8 -e 8'; do
            # shellcheck disable=SC2086 # words
            start speed "$bench" $call --min-time 500ms -c 0 --shape 1024x1024
            finish
            [ "$me" = 2 ] || awk -v round="$round" '!/^#/ {
                printf "%d %s %s B: min %s, p50 %s, p99 %s us, busbw %s GB/s\n",
                       round, $1, $3, $7, $8, $9, $12
            }' speed.1
        done
    done
}

# perftest NAME SIZE OPTION...: guest 2 is the server, and may come late
perftest() {
    local test=$1 size=$2
    local command=("$test" -d rxe0 -x 1 -F -s "$size" "${@:3}")
    if [ "$me" = 2 ]; then
        "${command[@]}" >"$test.2" 2>&1
    else
        for _ in {1..50}; do
            ! "${command[@]}" 10.77.0.2 >"$test.1" 2>"$test.err" || break
            sleep .1
        done
        awk -v what="$round $test" -v size="$size" '
            $1 == "#bytes" { gsub(/#bytes|#iterations/, ""); head = $0 }
            /inf/ { next }                  # it did not trust its clock
            $1 == size { $1 = $2 = ""; print what, size, "B:", $0, "(" head ")" }
        ' "$test.1"
    fi
    meet
}

for scene in $scenes; do
    "$scene"
done
[ "$me" != 1 ] || echo "count $tap_count $tap_failed"
