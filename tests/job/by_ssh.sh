#!/bin/bash
# by_ssh.sh - the script of dtensor(7) that starts ranks on hosts by ssh
#
# The script is taken from the page and run.  Its two hosts are addresses of the
# loopback device, and ssh is a program that runs the command here, in another
# directory and with a bare environment, as ssh does.  All four ranks must join
# and work; the status of one that fails must be that of the script.
#
# Without this test, the page could leave out a variable that a launcher must
# set.
. "$top_srcdir/tests/tap.sh"
page=$top_srcdir/man/dtensor.7
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}" "${!SLURM@}"
mkdir "$dir/bin" && cd "$dir" || exit 99

awk '/^\.SS/ { ours = /by ssh/ }
    ours && /^\.EE/ { exit }
    within { gsub(/\\e/, "\\"); gsub(/\\-/, "-"); print }
    ours && /^\.EX/ { within = 1 }' "$page" >by-ssh.sh
cat >bin/ssh <<'SSH'
#!/bin/sh
[ "$1" = -n ] && shift
shift
cd / && exec env -i PATH="$PATH" HOME=/ sh -c "$*" </dev/null
SSH
printf '#!/bin/sh\nexec "%s" "$@"\n' "$top_builddir/dtensor-bench" >prog
printf '#!/bin/sh\n[ "$DTN_RANK" != 2 ] || exit 7\n' >bad
chmod +x bin/ssh prog bad by-ssh.sh
printf '%s\n' '[cluster]' 'version = 1' '[nodes "gpu"]' \
    'hosts = gpu[01-02]' 'addresses = 127.0.0.[1-2]' 'ranks = 2' \
    'hca = none' '[transport]' 'inter_node = tcp' >pair.ini
export PATH="$dir/bin:$PATH"

timeout -k 1 100 ./by-ssh.sh ./prog allreduce -b 64 -e 64 -n 1 >said 2>&1
status=$?
[ $status = 0 ] && grep -q '4 on 2 hosts: gpu01 gpu02' said
good=$?
[ $good = 0 ] || sed 's/^/# /' said
ok $good "four ranks on two hosts join and work"
./by-ssh.sh ./bad
is "the status is that of the rank that fails" $? 7
is "the key can be read by its user only" "$(stat -c %a job.key)" 600
done_testing
