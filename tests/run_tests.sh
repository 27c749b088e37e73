#!/bin/sh
# Runs every test program given, prints its output only if it fails, and a total at the end.
# Exit status 0 only if all passed.
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    "$program" >"$log" 2>&1
    code=$?
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [A-Za-z_0-9]*$' "$log")
    if [ "$code" -ne 0 ] || [ "$ok" -eq 0 ]; then
        [ "$bad" -gt 0 ] || bad=1 # crashed, or ran no test at all
        cat "$log"
        printf 'FAIL %s (exit status %d)\n' "$program" "$code"
    else
        printf 'ok   %-40s %3d tests\n' "$(basename "$program")" "$ok"
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
