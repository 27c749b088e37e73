#!/bin/sh
# Runs every test program given, prints its output only if it fails, and a total at the end.
# Exit status 0 only if all passed. A program that crashes, hangs for TEST_SECONDS or runs no
# test counts as a failure.
# Teams of more threads than idle cores would spin at barriers.
export OMP_WAIT_POLICY=passive
passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The tests that CMocka reports as $1, each once: it names a failed one again in its summary.
count() {
    sed -n "s/^\[$1\] \([A-Za-z_0-9]*\)\$/\1/p" "$log" | sort -u | wc -l
}

for program in "$@"; do
    start=$(date +%s)
    timeout "${TEST_SECONDS:-900}" "$program" >"$log" 2>&1
    code=$?
    ok=$(count '       OK ')
    bad=$(count '  FAILED  ')
    skip=$(count '  SKIPPED ')
    if [ "$code" -ne 0 ] || [ "$ok" -eq 0 ] || [ "$bad" -gt 0 ]; then
        [ "$bad" -gt 0 ] || bad=1
        cat "$log"
        printf 'FAIL %s (exit status %d)\n' "$program" "$code"
    else
        printf 'ok   %-40s %3d tests %4d s\n' "$(basename "$program")" "$ok" \
            $(($(date +%s) - start))
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    skipped=$((skipped + skip))
done
if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
    printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
