#!/bin/bash
# languages.sh - programs of C++ and Fortran compute what those of C do
#
# dtensor.hpp and dtensor.f90 are compiled with a tour of all that they have,
# which runs on one rank and on several.
#
# Without this test, a change of the C interface could leave them behind: a
# Fortran compiler cannot see the C header.
. "$top_srcdir/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LOG
library=$top_builddir/.libs
here=$PWD
src=$(cd "$top_srcdir" && pwd)
run=$(cd "$top_builddir" && pwd)/dtensor-run
LD_LIBRARY_PATH=$(cd "$library" && pwd)
export LD_LIBRARY_PATH

# on RANKS PROGRAM...: what it prints, run where it may leave its file
on() {
    (cd "$tmp" && timeout 60 "$run" -n "$1" "${@:2}" 2>&1)
}

# printed WORD: the program of dtensor-languages(7) that contains WORD
printed() {
    awk -v word="$1" '/^\.EX/ { text = ""; inside = 1; next }
        /^\.EE/ { if (index(text, word)) printf "%s", text; inside = 0 }
        inside { text = text $0 "\n" }' "$src/man/dtensor-languages.7" |
        sed 's/\\e/\\/g; s/\\-/-/g'
}

# C++
compiler=${CXX:-c++}
if ! command -v "$compiler" >/dev/null; then
    skip_test "C++" "there is no $compiler"
elif [ -n "$SANITIZER_CFLAGS" ]; then
    skip_test "C++" "its compiler is not that of the sanitized library"
else
    is "dtensor.hpp compiles without a warning" "$("$compiler" -std=c++17 -Wall \
        -Wextra -Wpedantic -Wshadow -Werror -I"$src/lib" -o "$tmp/tour" \
        "$src/tests/languages/tour.cpp" -L"$library" -ldtensor 2>&1)" ""
    for ranks in 1 2 4; do
        is "the tour of C++ on $ranks ranks" "$(on $ranks ./tour)" \
            "mesh: no mesh \"thrown\" (there are: world)
sum 2016, last 63, equal 1
moved 1, left 0
loaded 1, filled 1
types right 1
all 64 on the last rank, first of the tutorial -1.61649
loss 40, dims 2, gradient 1
after a step 7.5
collectives wrong on 0
lists wrong on 0
messages wrong on 0
-1: placements: word 1 of \"S(4)\" is \"S(4)\", but the tensor has 1 dimensions
-1: elements: the tensor is f32, not f64 (ask for the C++ type of its dtype)
-1: mesh: no mesh \"nowhere\" (there are: world)"
    done
    is "of a job that cannot start one rank prints the error" \
        "$(on 2 ./tour none.ini)" "none.ini: error: cannot open: No such file or directory"
    printed 'int main' >"$tmp/turn.cpp"
    is "the program of the manual compiles" "$("$compiler" -std=c++17 -Wall \
        -I"$src/lib" -o "$tmp/turn" "$tmp/turn.cpp" -L"$library" -ldtensor 2>&1)" ""
    is "and runs" "$(on 2 ./turn | tail -n 1 | tr -s ' ')" \
        " [13664 14140 14616 15092 15568 16044 16520 16996]]"
fi

# Fortran
fortran=$src/lib/dtensor.f90
enumerators() {
    sed -n "/$1/,/end enum/s/&//p; /$1/,/end enum/p" "$fortran" |
        grep -oE 'DTENSOR_[A-Z0-9]+' | awk '!seen[$0]++'
}
values() {
    sed -n "/^enum $1 {/,/^}/p" "$src/lib/dtensor/types.h" |
        grep -oE '^ *DTENSOR_[A-Z0-9_]+' | tr -d ' ' | grep -vE '_N[A-Z]*S$|_LAST$'
}
is "dtensor.f90 has the dtypes of C, in their order" \
    "$(enumerators '! types of elements')" "$(values dtensor_dtype)"
is "and the reductions" "$(enumerators '! reductions')" "$(values dtensor_redop)"

# arguments: NAME and the number of arguments, of each function that is bound
arguments() {
    sed -e ':more; /&$/{N; s/ *& *\n */ /; b more}' "$fortran" |
        sed -nE 's/.*(function|subroutine) [a-z_]+\(([^)]*)\).*name="(dtensor_[a-z_]+)".*/\3 \2/p' |
        awk '{ name = $1; $1 = ""; print name, split($0, list, ",") }' | sort
}
called=$(grep -oE '\bdtensor_[a-z_]+\(' "$src/man/dtensor-tutorial.7" | tr -d '(' | sort -u)
is "it binds each function that the tutorial calls" "$(
    for name in $called; do
        grep -q "name=\"$name\"" "$fortran" || echo "$name"
    done)" ""
is "dtensor.hpp calls each but two, for which it has op() and dtensor_spec_on()" "$(
    for name in $called; do
        grep -q "\b$name\b" "$src/lib/dtensor.hpp" "$src"/lib/dtensor/*.hpp || echo "$name"
    done)" "dtensor_matmul
dtensor_spec_init"
is "each function that it binds has the arguments that it has in C" "$(arguments)" \
    "$(arguments | while read -r name _; do
        cat "$src"/lib/dtensor/*.h | tr '\n' ' ' |
            grep -oE "[ *]$name\([^)]+\);" | head -n 1 |
            awk -v name="$name" '{ print name, gsub(/,/, ",") + 1 }'
    done)"
if ! command -v gfortran >/dev/null; then
    skip_test "Fortran" "gfortran is not installed"
elif [ -n "$SANITIZER_CFLAGS" ]; then
    skip_test "Fortran" "its compiler is not that of the sanitized library"
else
    cd "$tmp" || exit 1
    is "dtensor.f90 compiles without a warning" "$(gfortran -std=f2018 -Wall \
        -Wextra -Werror "$fortran" "$src/tests/languages/tour.f90" \
        -o fortran_tour -L"$LD_LIBRARY_PATH" -ldtensor 2>&1)" ""
    cd "$here" || exit 1
    cat >"$tmp/sizes.c" <<'C'
#include <dtensor.h>
int main(void)
{
    printf("sizes %zu %zu %zu %zu\n", sizeof(struct dtensor_error),
           sizeof(struct dtensor_placement), sizeof(struct dtensor_spec),
           sizeof(struct dtensor_op_args));
    return 0;
}
C
    ${CC:-cc} -I"$src/lib" -o "$tmp/sizes" "$tmp/sizes.c"
    for ranks in 1 2 4; do
        is "the tour of Fortran on $ranks ranks" "$(on $ranks ./fortran_tour)" \
            "$("$tmp/sizes")
sum 2016 10 1
loaded 1
copied 1
product  2.50  0.25
any 10.00  1.50 T
random T
given T
as in the tutorial T
f32[3,3]  S(0)  on world(world=$ranks)
[[ -1.61649   1.22916  -1.56054]
 [ 0.464621  0.633083  0.743367]
 [ 0.103622  0.188317 -0.162294]]
collectives wrong on 0 T
lists wrong on 0
messages wrong on 0
-1: mesh: no mesh \"nowhere\" (there are: world)"
    done
    cat >"$tmp/copied.f90" <<'F'
subroutine halo(mesh, a, err)
    use dtensor
    type(c_ptr) :: mesh
    real(c_double), asynchronous :: a(:, :)
    type(dtensor_error) :: err
    integer(c_int) :: rc

    rc = dtensor_broadcast(mesh, 0_c_int, a(1, :), 1_c_size_t, DTENSOR_F64, err)
end subroutine
F
    cd "$tmp" || exit 1
    is "of an array in a group the compiler makes no copy" "$(gfortran "$fortran" \
        -c copied.f90 2>&1 | grep -c 'Error.*ASYNCHRONOUS')" 1
    cd "$here" || exit 1
    printed 'program turn' >"$tmp/turn.f90"
    is "the program of the manual compiles" "$(cd "$tmp" && gfortran -Wall "$fortran" \
        turn.f90 -o fortran_turn -L"$LD_LIBRARY_PATH" -ldtensor 2>&1)" ""
    is "and runs" "$(on 2 ./fortran_turn)" "   0.   1."
fi
done_testing
