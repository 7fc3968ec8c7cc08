#!/bin/bash
# nvcc.sh - for which GPUs the kernels are compiled, by nvccs of any age
#
# Last, ./configure with one that is too old, from the answers that it found for
# this build, so that it takes a second or two.
#
# Without this test, an old CUDA toolkit, or a later one that has given up old
# GPUs, could end the build with an error of ptxas instead of fewer GPUs or a
# sentence.
. "$top_srcdir/tests/tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# An nvcc that says what these files say, and compiles nothing.
cat >"$dir/nvcc" <<'END'
#!/bin/sh
here=${0%/*}
case $1 in
--version) cat "$here/version" ;;
--list-gpu-arch) cat "$here/gpus" ;;
--help) cat "$here/help" ;;
*) cat "$here/said"; exit "$(cat "$here/status")" ;;
esac
END
chmod +x "$dir/nvcc"

# nvcc RELEASE GPU...
nvcc() {
    echo "Cuda compilation tools, release $1, V$1.88" >"$dir/version"
    shift
    printf 'compute_%s\n' "$@" >"$dir/gpus"
    : >"$dir/help"
    : >"$dir/said"
    echo 0 >"$dir/status"
}

targets() {
    sh "$top_srcdir/lib/cuda/targets.sh" "$dir/nvcc" 2>&1
}

nvcc 13.0 75 80 86 90 100 103 120
echo "--compress-mode [default,size]" >"$dir/help"
is "CUDA 13.0: all three, compressed, and PTX of the newest" "$(targets)" \
    "-compress-mode=size -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=[sm_100,compute_100]"
nvcc 12.0 50 80 89 90
is "CUDA 12.0: no sm_100" "$(targets)" \
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]"
nvcc 15.0 90 100 130
is "a later one without sm_80" "$(targets)" \
    "-gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=[sm_100,compute_100]"

nvcc 10.2 30 70 75
is "CUDA 10.2 is refused" "$(targets; echo $?)" \
    "nvcc of CUDA 10.2 knows neither sm_80 nor a later GPU (expected CUDA 12.0 or newer)
1"
nvcc 12.0 80 90
echo 'host_config.h:132:2: error: #error -- unsupported GNU version!' >"$dir/said"
echo 1 >"$dir/status"
is "a C compiler that is too new is named" "$(targets; echo $?)" \
    "nvcc of CUDA 12.0 cannot compile the kernels: host_config.h:132:2: error: #error -- unsupported GNU version!
1"
: >"$dir/version"
is "a program that is no nvcc is refused" "$(targets)" \
    "$dir/nvcc --version names no release: it is no nvcc"

# configure ARGUMENT...: its exit status, and what it says of CUDA
configure() {
    local cache=$dir/cache
    sed -n '/^ac_cv_path_NVCC/d; /^ac_cv_env_/d; /^[a-z]*_cv_/p' \
        "$top_builddir/config.log" >"$cache"
    mkdir -p "$dir/build" && cd "$dir/build" || return
    PATH=$dir:$PATH "$top_srcdir/configure" --cache-file="$cache" --no-create \
        --without-verbs --without-hwloc --without-sodium --without-munge \
        --without-blas "$@" >said 2>&1 </dev/null
    echo "status $?"
    grep -E '^configure: (WARNING|error):|^ *CUDA toolkit' said
}

nvcc 10.2 30 70 75
old="nvcc of CUDA 10.2 knows neither sm_80 nor a later GPU (expected CUDA 12.0 or newer)"
is "configure builds without kernels where nvcc is too old" "$(configure)" \
    "status 0
configure: WARNING: $old; so no kernels for GPUs are built
    CUDA toolkit     no"
mkdir "$dir/bin" && mv "$dir/nvcc" "$dir/version" "$dir/gpus" "$dir/help" "$dir/bin"
is "configure --with-cuda=DIR refuses it" "$(configure --with-cuda="$dir")" \
    "status 1
configure: error: --with-cuda=$dir: $old; install another CUDA toolkit, or configure --without-cuda"
is "configure --with-cuda=DIR of a folder without nvcc says so" \
    "$(configure --with-cuda="$dir/none")" \
    "status 1
configure: error: --with-cuda=$dir/none: nvcc is not to be found: install the CUDA toolkit, or say where it is"
done_testing
