#!/bin/sh
# check_refusals.sh COMPILER FLAGS...: each file of tests/cpu/refused must not compile for the CPU,
# and the compiler must say what the file's first line has after "refused: ". transpose.cu must.
compile() {
    source=$1
    shift
    { echo "#line 1 \"$source\""; sed -E -z -f cuda/cpu/translate.sed "$source"; } |
        "$@" -w -fsyntax-only -x c++ - 2>&1
}

failed=0
compile tests/cpu/planted/transpose.cu "$@" || failed=1
for source in tests/cpu/refused/*.cu; do
    expected=$(sed -n '1s:^/\* refused\: \(.*\) \*/$:\1:p' "$source")
    if output=$(compile "$source" "$@"); then
        echo "$source: compiles for the CPU"
        failed=1
    elif [ -z "$expected" ] || ! echo "$output" | grep -qF "$expected"; then
        echo "$source: expected \"$expected\"; the compiler says:"
        echo "$output"
        failed=1
    fi
done
exit $failed
