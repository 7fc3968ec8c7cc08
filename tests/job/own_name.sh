#!/bin/bash
# own_name.sh - hosts whose own name is 127.0.1.1 in their /etc/hosts
#
# Three hosts of one rank, over tcp, in network namespaces, each with an
# /etc/hosts of its own.  Debian gives a machine's name 127.0.1.1 there, where
# no other host reaches it.  Needs root.
#
# Without this test, a job on such machines could wait for connect_timeout and
# name no reason, or name a rank as lost that waits for its peers.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"
hosts_begin "$@"
host 1; host 2; host 3
printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' 'hosts = node[1-3]' \
    'ranks = 1' '[transport]' 'inter_node = tcp' 'port = 17851' \
    'connect_timeout = 20s' 'op_timeout = 20s' >job.ini

# job: run it; the exit codes of its ranks, which say the rest in out.HOST
job() {
    local k codes=
    for k in 1 2 3; do
        DTN_HOST=node$k DTN_KEY=$test_key at "$k" unshare --mount bash -c \
            "mount --bind hosts.$k /etc/hosts &&
            exec timeout 60 $top_builddir/tests/job/limited_job job.ini" \
            >"out.$k" 2>&1 &
        rank[k]=$!
    done
    for k in 1 2 3; do
        wait "${rank[k]}"
        codes+=" $?"
    done
    echo "${codes# }"
}

# words PATTERN: how many of the three say that
words() { cat out.[1-3] | grep -c "$1"; }

for k in 1 2 3; do
    { echo "127.0.1.1 node$k"; cat hosts; } >"hosts.$k"
done
is "a host that has another address, too, is reached there" "$(job)" "0 0 0"

for k in 1 2 3; do
    cp hosts "hosts.$k"
done
sed -i 's/.* node1$/127.0.1.1 node1/' hosts.1
job >codes
is "rank 0 on a host that has no other: all say why" "$(
    words 'node1, .* is 127.0.1.1, which no other host reaches (take the name')" 3

cp hosts hosts.1
sed -i 's/.* node2$/127.0.1.1 node2/' hosts.2
is "so does a rank that does not reach such a host, and the others leave" \
    "$(job) $(words 'rank 1 listens at 127.0.1.1:.*, which only its own host')" \
    "10 10 3 1"
sed 's/^/# /' out.[1-3]
kill "${host[@]}"
done_testing
