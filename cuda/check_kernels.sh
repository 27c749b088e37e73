#!/bin/sh
# Compiles every kernel file for every GPU given, prints registers, shared memory and spills of
# each kernel, and fails if one does not compile without a warning or spills registers.
# Usage: check_kernels.sh "NVCC AND FLAGS" "sm_80 sm_90a ..." FILE.cu ...
nvcc=$1
archs=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
kernels=0
printf '%-8s %-48s %9s %7s %6s\n' GPU kernel registers shared spills
for file in "$@"; do
    for arch in $archs; do
        virtual=compute_${arch#sm_}
        if ! $nvcc -gencode "arch=$virtual,code=$arch" -Xptxas -v -cubin -o /dev/null "$file" \
            >"$log" 2>&1; then
            cat "$log"
            echo "FAIL $file does not compile for $arch"
            status=1
            continue
        fi
        # Per kernel, ptxas prints its mangled name, its spills, then its registers.
        cu++filt <"$log" 2>/dev/null | cat >"$log.names"
        [ -s "$log.names" ] || c++filt <"$log" >"$log.names"
        awk -v arch="$arch" '
            /Compiling entry function/ {
                split($0, part, "\047"); name = part[2]
                sub(/^void /, "", name); sub(/\(.*/, "", name)
                gsub(/\(int\)/, "", name)
            }
            /spill stores/ { spills = $5 + $9 }
            /Used .* registers/ {
                registers = shared = 0
                for (i = 1; i <= NF; i++) {
                    if ($i == "registers,") registers = $(i - 1)
                    if ($i ~ /^smem/) shared = $(i - 2)
                }
                printf "%-8s %-48s %9d %7d %6d\n", arch, name, registers, shared, spills
                if (spills > 0) bad = 1
                count++
            }
            END { print count + 0 > "/dev/stderr"; exit bad }' "$log.names" 2>"$log" ||
            { echo "FAIL $file spills registers on $arch"; status=1; }
        kernels=$((kernels + $(cat "$log")))
        rm -f "$log.names"
    done
done
echo "$kernels kernels checked"
[ "$status" -eq 0 ] && [ "$kernels" -gt 0 ]
