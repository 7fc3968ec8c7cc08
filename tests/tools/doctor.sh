#!/bin/bash
# doctor.sh - dtensor-conf --doctor, --env and --topology, and bad input
#
# Each check of --doctor is made to find something wrong, and says what to do.
# The variables of --env are compared with the sources; --topology reads a machine
# that hwloc is told of.
#
# Without this test, a check could find nothing, or say that all is well.
. "$top_srcdir/tests/tap.sh"
conf=$top_builddir/dtensor-conf
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
unset "${!DTN_@}" "${!SLURM@}" CUDA_VISIBLE_DEVICES

# doctor CHECK COMMAND...: what it says of that, blanks squeezed, and its code
doctor() {
    local check=$1 code
    shift
    "$@" >out 2>err
    code=$?
    echo "$(awk -v check="$check" '$2 == check' out | tr -s ' ') ($code)"
}

# file HOSTS RANKS LINES...: x.ini
file() {
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' "hosts = $1" "ranks = $2" \
        "${@:3}" >x.ini
}

# says CLAIM PATTERN TEXT
says() {
    [[ $3 =~ $2 ]]
    ok $? "$1"
    [[ $3 =~ $2 ]] || printf '# %s\n' "$3"
}

mkdir bin
scontrol() {
    printf '%s\n' '#!/bin/sh' "$@" >bin/scontrol
    chmod +x bin/scontrol
    export PATH=$dir/bin:$PATH
}
scontrol 'cat <<END
KillOnBadExit           = 1
PropagateResourceLimits = ALL
PropagateResourceLimitsExcept = MEMLOCK
TaskPlugin              = task/affinity,task/cgroup
END'
file localhost 2
"$conf" --doctor x.ini >out 2>err
is "a machine that is well: exit 0, a line of each check" "$? $(<err) $(
    awk '{ print $2 }' out | uniq | paste -sd ' ')" \
    "0  file names ports key memlock files cpus devices mtu gpu slurm"
is "an empty DTN_CLUSTER names no file" \
    "$(doctor file env DTN_CLUSTER= "$conf" --doctor)" \
    "ok file none is given: the cluster is what is started (0)"
is "each line begins with a verdict" "$(grep -cvE '^(ok  |note|bad )  [a-z]+ +[^ ]' out)" 0
is "Slurm's settings are good" "$(awk '$2 == "slurm" { print $1 }' out | paste -sd ' ')" \
    "ok ok ok"

says "a file that is wrong is bad" '^bad file .* \(2\)$' "$(
    file localhost 0; doctor file "$conf" --doctor x.ini)"
says "a name that does not resolve" \
    '^bad names no\.such\.host\.invalid, the address of .*: add it to /etc/hosts .* \(2\)$' "$(
    file '192.0.2.1,no.such.host.invalid' 2; doctor names "$conf" --doctor x.ini)"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    file six.test 1
    { echo 'fd00::77 six.test'; cat /etc/hosts; } >hosts
    says "a name that has only an address of IPv6 is good" \
        '^ok names 1 host resolves; this machine is none of them \(0\)$' "$(
        doctor names unshare -m bash -c \
            "mount --bind hosts /etc/hosts && exec $conf --doctor x.ini")"
else
    skip_test "a name that has only an address of IPv6" "unshare -m needs root"
fi
says "a name that only this host reaches" \
    '^note names .* resolves to 127\..*127\.0\.1\.1' "$(
    file '127.0.0.1,192.0.2.1' 2; doctor names "$conf" --doctor x.ini)"
says "without munged or a key a job of two hosts is bad" \
    '^bad key no munged at /no/socket .*: start munged, or export DTN_KEY=.* \(2\)$' "$(
    DTN_MUNGE_SOCKET=/no/socket doctor key "$conf" --doctor x.ini)"
says "with a key it is not" '^ok key DTN_KEY is set' "$(
    DTN_KEY=$test_key doctor key "$conf" --doctor x.ini)"
for auth in none key munge; do
    sed "s/^version = 1/&\nauth = $auth/" x.ini >"$auth.ini"
done
says "auth = none asks for neither" '^note key auth = none: ranks .* \(0\)$' "$(
    DTN_MUNGE_SOCKET=/no/socket doctor key "$conf" --doctor none.ini)"
says "auth = key asks for a key" '^bad key auth = key, .*: export DTN_KEY=.* \(2\)$' "$(
    doctor key "$conf" --doctor key.ini)"
says "auth = munge asks for munged, even with a key" \
    '^bad key no munged at /no/socket \([^)]*\): start munged \(2\)$' "$(
    DTN_KEY=$test_key DTN_MUNGE_SOCKET=/no/socket doctor key "$conf" --doctor munge.ini)"
says "more ranks than CPUs are noted" '^note cpus 1000 ranks on a host, .* \(0\)$' "$(
    file localhost 1000; ulimit -n 4096; doctor cpus "$conf" --doctor x.ini)"
says "too few files are bad" '^bad files 1000 files .* 2128 are needed .* \(2\)$' "$(
    ulimit -n 1000; doctor files "$conf" --doctor x.ini)"
file localhost 2 '[transport]' 'inter_node = rc'
if [ "$(id -u)" = 0 ] && setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock true 2>/dev/null; then
    says "8 MiB of locked memory are bad for rc" \
        '^bad memlock 8.0 MiB may be locked: .*ulimit -l unlimited.* \(2\)$' "$(
        ulimit -l 8192
        doctor memlock setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
            "$conf" --doctor x.ini)"
else
    skip_test "8 MiB of locked memory" "only root can give up its privilege"
fi
if [ -d /sys/class/infiniband ] && [ -n "$(ls /sys/class/infiniband)" ]; then
    skip_test "rc without a device" "there is one"
else
    says "rc without an RDMA device is bad" '^bad devices .*(RDMA device|no verbs).* \(2\)$' "$(
        doctor devices "$conf" --doctor x.ini)"
fi
if command -v python3 >/dev/null; then
    file localhost 2 '[transport]' 'port = 17799'
    python3 -c 'import socket, time
s = socket.socket(); s.bind(("", 17799)); s.listen(); print("up", flush=True); time.sleep(60)' \
        >up &
    server=$!
    until [ -s up ] || ! kill -0 $server 2>/dev/null; do sleep .02; done
    says "a port that another program has is bad" \
        '^bad ports port 17799 cannot be used: Address already in use: .* \(2\)$' "$(
        doctor ports "$conf" --doctor x.ini)"
    kill $server
else
    skip_test "a port that another program has" "no python3 to listen"
fi
read -r low high </proc/sys/net/ipv4/ip_local_port_range
file localhost 2 '[transport]' "port = $high"
says "a port that the system gives to connections is told" \
    "note ports the system gives port $high to other connections too: it uses $low to $high: .*ip_local_port_range" "$(
    doctor ports "$conf" --doctor x.ini)"
file localhost 2 '[transport]' "port = $((low - 1))"
said=$(doctor ports "$conf" --doctor x.ini)
[[ $said == *" port $((low - 1)) "* && $said != *"the system gives"* ]]
ok $? "a port below those is not"
# A driver that answers CODE and has 2 GPUs; "" if none can be made.
driver() {
    printf '%s\n' "int cuInit(unsigned flags) { return $1 * !flags; }" \
        'int cuDeviceGetCount(int *n) { *n = 2; return 0; }' >c.c
    ${CC:-cc} -shared -fPIC -o libcuda.so.1 c.c 2>/dev/null && [ -z "$SANITIZER_CFLAGS" ]
}
if driver 0; then
    says "GPUs are counted" '^ok gpu 2 GPUs' "$(
        LD_LIBRARY_PATH=$dir doctor gpu "$conf" --doctor)"
    driver 999
    says "a driver that does not start is bad" \
        '^bad gpu the NVIDIA driver shows no GPU \(error 999\): see nvidia-smi.* \(2\)$' "$(
        LD_LIBRARY_PATH=$dir doctor gpu "$conf" --doctor)"
    rm libcuda.so.1
else
    skip_test "GPUs are counted" "no library can stand for a driver here"
fi
scontrol 'cat <<END
KillOnBadExit           = 0
PropagateResourceLimits = ALL
PropagateResourceLimitsExcept = (null)
TaskPlugin              = task/none
END'
is "Slurm's defaults are noted, with a remedy each" "$(
    doctor slurm "$conf" --doctor | sed -E 's/ \([0-9]\)$//' |
        grep -cE '^note slurm .*: (Propagate.*=MEMLOCK|srun --kill-on-bad-exit=1|TaskPlugin=)')" 3
scontrol 'exit 1'
says "a Slurm that does not answer is bad in a job" \
    '^bad slurm scontrol show config fails: .* \(2\)$' "$(
    SLURM_JOB_ID=1 doctor slurm "$conf" --doctor)"
mkdir few
for program in bash awk tr sed basename dirname cat ls rm mkdir grep; do
    ln -s "$(type -P "$program")" few/
done
says "SLURM_JOB_ID without Slurm is bad" \
    '^bad slurm scontrol is not found, but SLURM_JOB_ID is set: unset it.* \(2\)$' "$(
    SLURM_JOB_ID=1 doctor slurm env PATH="$dir/few" "$conf" --doctor)"

# ------------------------------------------------------------------- --env ---
"$conf" --env | awk '{ print $1 }' | sort >listed
cd "$top_srcdir" || exit 99
{
    grep -rhoE 'getenv\("[A-Z_]+"' lib transport tools | cut -d'"' -f2
    grep -rhoE '"((DTN|SLURMD?)_[A-Z_]+|LC_[A-Z]+|LANG)"' --include='*.[ch]' \
        lib transport tools | tr -d '"'
} | sort -u >"$dir/read"
cd "$dir" || exit 99
is "--env lists the variables that are read, and no others" "$(diff read listed)" ""
is "a value is shown, a default in parentheses" "$(
    DTN_LOG=info "$conf" --env | grep -E '^DTN_(LOG|CUBLAS) ' | tr -s ' ')" \
    "DTN_LOG info
DTN_CUBLAS - (libcublas.so.13, else libcublas.so.12)"
is "but a key is not" "$(DTN_KEY=$test_key "$conf" --env | grep DTN_KEY | tr -s ' ')" \
    "DTN_KEY 64 characters, not shown"

# -------------------------------------------------------------- --topology ---
# Two packages: on the first a GPU and mlx5_0 behind one switch, and eth0 at
# another root port; on the second mlx5_1.  The parser that hwloc has without
# libxml2 reads no comments, so this one is here.
server=$top_srcdir/tests/tools/server.xml
HWLOC_XMLFILE=$server "$conf" --topology >out 2>err
if grep -q 'no hwloc' err; then
    skip_test "--topology" "$(<err)"
else
    is "--topology: nodes with their devices, and ways from the GPU" "$(<err)$(<out)" \
        "node 0: CPUs 0, 64.0 GiB; cuda0 mlx5_0 eth0
node 1: CPUs 1, 64.0 GiB; mlx5_1
from cuda0: mlx5_0 PIX, eth0 PHB, mlx5_1 SYS"
fi

# --------------------------------------------------------------- bad input ---
file localhost 2
said() {
    "$conf" "$@" >out 2>err
    echo "$? $(head -1 err)$(head -c 60 out)"
}
is "an unknown option: the nearest word" "$(said --doktor)" \
    '2 dtensor-conf: --doktor: no such option; did you mean "--doctor"?'
is "an unknown view, too" "$(said --show rank x.ini)" \
    '2 dtensor-conf: no such view: rank; did you mean "ranks"?'
is "a folder is no file" "$(said .)" \
    "2 .: error: is a directory; expected a regular file"
is "--doctor takes one file" "$(said --doctor x.ini y.ini)" \
    "2 dtensor-conf: --doctor takes one file, not also y.ini"
is "not under Slurm though told so" "$(SLURM_JOB_ID=1 said --fabric x.ini | cut -c1-45)" \
    "2 dtensor-conf: SLURM_JOB_ID is set but SLURM"
is "whoever reads may stop" "$(
    "$conf" --show ranks "$top_srcdir/conf/128-nodes.ini" 2>err | head -1 | tr -s ' ')$(<err)" \
    " rank host local gpu hca cpus"
is "a locale that there is not" "$(
    env LC_ALL=xx_XX "$conf" x.ini 2>&1 | grep -v 'setlocale:')" \
    "x.ini: ok: 2 ranks on 1 node; meshes world(world=2)"
done_testing
