# shellcheck shell=bash
# completion.bash - bash completes options, files and words of the dtensor-* tools
#
# Options and what they take are read from the --help of the tool that is
# completed, so a new option needs nothing here.

_dtensor_dtypes="f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool c64 c128
    f8e4m3 f8e5m2"
_dtensor_redops="sum avg prod min max band bor bxor"

# What an option takes, such as FILE; nothing if it takes none.
_dtensor_takes() {
    sed -nE "s/^ +(-., +)?--?${2#-}[= ]([A-Z][A-Z|]*).*/\2/p
        s/^ +(${2}), --[a-z-]+[= ]([A-Z][A-Z|]*).*/\2/p" <<<"$1"
}

# The words that follow a line of --help, indented, up to an empty line.
_dtensor_listed() {
    sed -n "/^$2/,/^\$/s/^  //p" <<<"$1"
}

_dtensor() {
    local tool=$1 word=$2 before=$3 help takes
    help=$("$tool" --help 2>/dev/null) || return
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
    [ "$word" != = ] || word=
    case "$before" in -*) takes=$(_dtensor_takes "$help" "$before") ;; esac
    case "${takes-}" in
    FILE) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    TYPE) mapfile -t COMPREPLY < <(compgen -W "$_dtensor_dtypes" -- "$word") ;;
    OP) mapfile -t COMPREPLY < <(compgen -W "$_dtensor_redops" -- "$word") ;;
    VIEW)
        takes=$(sed -nE 's/^ {22}([a-z]+)  .*/\1/p' <<<"$help")
        mapfile -t COMPREPLY < <(compgen -W "$takes" -- "$word")
        ;;
    ?*) COMPREPLY=() ;;
    *)
        case "${tool##*/}:$word" in
        *:-*)
            takes=$(sed -nE 's/^ +(-., +)?(--[a-z-]+).*/\2/p' <<<"$help")
            mapfile -t COMPREPLY < <(compgen -W "$takes" -- "$word")
            ;;
        dtensor-bench:*)
            takes="all op rng $(_dtensor_listed "$help" TEST)"
            mapfile -t COMPREPLY < <(compgen -W "$takes" -- "$word")
            ;;
        dtensor-run:*) mapfile -t COMPREPLY < <(compgen -c -- "$word" | sort -u) ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        esac
        ;;
    esac
}

complete -o filenames -F _dtensor dtensor-bench dtensor-conf dtensor-plan dtensor-run
