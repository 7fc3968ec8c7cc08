#!/bin/bash
# completion.sh - the Tab key knows the options and words of the tools
#
# Without this test, a change of the layout of --help would leave users without
# completion, in silence.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tools/completion.bash"
cd "$top_builddir" || exit 1

# completes WORD...: what the last of the words becomes, on one line
completes() {
    local n=$#
    COMP_WORDS=("$@")
    COMP_CWORD=$((n - 1))
    COMPREPLY=()
    _dtensor "$1" "${COMP_WORDS[n - 1]}" "${COMP_WORDS[n - 2]}"
    echo "${COMPREPLY[*]}"
}

for tool in run conf plan bench; do
    is "every long option of dtensor-$tool is offered" \
        "$(completes "./dtensor-$tool" -- | tr ' ' '\n' | sort)" \
        "$("./dtensor-$tool" --help | grep -oE '^ +(-., +)?--[a-z-]+' |
            grep -o -- '--[a-z-]*' | sort)"
done
is "an option is completed" "$(completes ./dtensor-bench --minb)" --minbytes
is "a dtype is" "$(completes ./dtensor-bench -d bf)" bf16
is "also after the long option" "$(completes ./dtensor-plan --dtype f8)" \
    "f8e4m3 f8e5m2"
is "a reduction is" "$(completes ./dtensor-bench --op b)" "band bor bxor"
is "a file is, after =, where bash splits words" \
    "$(completes ./dtensor-run --cluster = config.h)" "config.h"
is "a view is" "$(completes ./dtensor-conf --show dev)" devices
is "a test is" "$(completes ./dtensor-bench reduce_)" \
    "reduce_scatter reduce_scatterv"
is "a program is" "$(completes ./dtensor-run ech)" echo
is "what takes a number offers nothing" "$(completes ./dtensor-bench -n 1)" ""
is "the dtypes are those of the library" \
    "$(tr ' ' '\n' <<<"$_dtensor_dtypes" | sed '/^$/d' | sort)" \
    "$(sed -n '/^enum dtensor_dtype {/,/^}/s/^ *DTENSOR_\([A-Z0-9]*\),.*/\1/p' \
        "$top_srcdir/lib/dtensor/types.h" | tr '[:upper:]' '[:lower:]' | sort)"
is "the reductions are" \
    "$(tr ' ' '\n' <<<"$_dtensor_redops" | sort)" \
    "$(sed -n '/^enum dtensor_redop {/,/^}/s/^ *DTENSOR_\([A-Z0-9]*\),.*/\1/p' \
        "$top_srcdir/lib/dtensor/types.h" | grep -v '^NREDOPS' | tr '[:upper:]' '[:lower:]' |
        sort)"
done_testing
