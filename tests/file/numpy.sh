#!/bin/bash
# numpy.sh - NumPy reads what dtensor_save() writes, and the reverse
#
# NumPy makes an array of each dtype that it has, and of several shapes; three
# ranks load it with other placements than they save it with; NumPy reads the
# result and compares.
#
# Without this test, files could be .npy files in our own eyes only.
. "$top_srcdir/tests/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ -n "$python" ] || skip_all "no NumPy (install python3-numpy)"

"$python" - "$folder" <<'END'
import sys, numpy
types = "f4 f8 f2 i1 u1 i4 i8 i2 u2 u4 u8 b1 c8 c16".split()
for n, shape in enumerate([(), (7,), (5, 3), (2, 0, 4), (2, 3, 4, 5)]):
    for t in types:
        a = (numpy.arange(numpy.prod(shape, dtype=int)) % 100).reshape(shape)
        numpy.save(f"{sys.argv[1]}/{t}.{n}.npy", a.astype(t))
END
convert=$top_builddir/tests/file/convert
for n in 0 1 2 3 4; do
    placement=(R "S(0)" "S(1)" "S(2)" "C(3,2)")
    for file in "$folder"/*."$n".npy; do
        "$top_builddir"/dtensor-run -n 3 "$convert" "$file" "${placement[n]}" \
            "${file%.npy}.out.npy" || break
    done
    is "NumPy reads arrays of ${placement[n]}" "$(
        "$python" - "$folder" "$n" <<'END'
import glob, sys, numpy
count = 0
for name in glob.glob(f"{sys.argv[1]}/*.{sys.argv[2]}.npy"):
    a, b = numpy.load(name), numpy.load(name[:-4] + ".out.npy")
    assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), name
    m = numpy.load(name[:-4] + ".out.npy", mmap_mode="r")
    assert (a == m).all()
    count += 1
print(count)
END
    )" 14
done

"$python" -c 'import numpy, sys
numpy.save(sys.argv[1], numpy.ones((3, 4), order="F"))' "$folder/columns.npy"
is "a column-major array is refused in words" \
    "$("$top_builddir"/dtensor-run -n 1 "$convert" "$folder/columns.npy" R \
        "$folder/no.npy" 2>&1 | grep -o 'the array is .*')" \
    "the array is column-major (save numpy.ascontiguousarray() of it)"
done_testing
