#!/bin/sh
# interface.sh HEADERS - the public interface as one text in C, without comments
#
# "make interface" stores it as tests/packages/interface.txt, which abi.sh compares
# with the headers of the day.
set -eu
cd "$1"
sed -n 's/^#include "\([^"]*\)".*/\1/p' dtensor.h | while read -r part; do
    sed -e '/^#include "/d' -e '/^#ifdef __cplusplus/,/^#endif/d' "$part" |
        ${CC:-cc} -fpreprocessed -dD -E -P -x c - |
        sed -e '/^#ifndef DTENSOR_[A-Z]*_H *$/d' -e '/^#define DTENSOR_[A-Z]*_H *$/d' \
            -e '/^#endif$/d'
done
