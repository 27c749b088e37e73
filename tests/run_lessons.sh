#!/bin/sh
# Runs every lesson given with its defaults: one line each, its output only if it fails (a claim
# that does not hold exits 1). With --plots DIR first, the lessons also draw their figures there.
# Exit status 0 only if all passed.
plots=
if [ "$1" = --plots ]; then
    plots=$2
    shift 2
    mkdir -p "$plots" || exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run_lesson PROGRAM: once, or with figures once for each format.
run_lesson() {
    if [ -z "$plots" ]; then
        "$1"
        return
    fi
    figure=$plots/$(basename "$1")
    rm -f "$figure"*.png "$figure"*.svg "$figure"*.csv
    "$1" --csv "$figure.csv" --plot "$figure.png" && "$1" --csv "$figure.csv" --plot "$figure.svg"
}

failed=0
for program in "$@"; do
    start=$(date +%s)
    if run_lesson "$program" >"$log" 2>&1; then
        printf 'ok   %-40s %3d s\n' "$(basename "$program")" $(($(date +%s) - start))
    else
        cat "$log"
        printf 'FAIL %s\n' "$program"
        failed=1
    fi
done
exit $failed
