#!/bin/sh
# targets.sh NVCC - for which GPUs this nvcc compiles the kernels, as its options
#
# sm_80, 90 and 100, as far as it knows them, and PTX of the newest of them for
# later ones.  A trial shows whether it can compile at all: an nvcc refuses a C
# compiler that is newer than itself.  If it cannot, the reason goes to standard
# error.
nvcc=$1

die() {
    echo "$*" >&2
    exit 1
}

release=$("$nvcc" --version 2>/dev/null |
    sed -n 's/.*release \([0-9.]*\).*/\1/p')
[ -n "$release" ] || die "$nvcc --version names no release: it is no nvcc"
known=" $("$nvcc" --list-gpu-arch 2>/dev/null | tr '\n' ' ')"
options='' newest=''
for gpu in 80 90 100; do
    case $known in *" compute_$gpu "*) ;; *) continue ;; esac
    [ -z "$newest" ] ||
        options="$options -gencode arch=compute_$newest,code=sm_$newest"
    newest=$gpu
done
[ -n "$newest" ] ||
    die "nvcc of CUDA $release knows neither sm_80 nor a later GPU" \
        "(expected CUDA 12.0 or newer)"
options="$options -gencode arch=compute_$newest,code=[sm_$newest,compute_$newest]"
! "$nvcc" --help 2>/dev/null | grep -q -e --compress-mode ||
    options="-compress-mode=size$options"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cat >"$dir/trial.cu" <<'END'
__extension__ typedef unsigned __int128 wide;
struct args { unsigned long long *x; };
extern "C" __global__ void trial(const __grid_constant__ struct args args)
{
    *args.x = (unsigned long long)((wide)*args.x * 5 >> 64);
}
END
# Options in several words.
# shellcheck disable=SC2086
"$nvcc" -fatbin -Xptxas -warn-lmem-usage -t 2 $options \
    -o "$dir/trial.fatbin" "$dir/trial.cu" >"$dir/said" 2>&1 ||
    die "nvcc of CUDA $release cannot compile the kernels:" \
        "$(grep -m 1 -iE 'error|fatal' "$dir/said" || head -n 1 "$dir/said")"
echo "${options# }"
