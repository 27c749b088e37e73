#!/bin/sh
# Fails if a step mark changes the machine code of a kernel: compiles each kernel file for every
# GPU given as it is, and a copy without its marks, and compares.
# Usage: check_steps.sh "NVCC AND FLAGS" "sm_80 sm_90a ..." FILE.cu ...
nvcc=$1
archs=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mark='STEP\(_ROWS\|_STATISTICS\|_NORMS\|S_BEGIN\|S_BEGIN_WARP\)\{0,1\}('
mkdir "$folder/marked" "$folder/unmarked"
status=0
compared=0
for file in "$@"; do
    name=$(basename "$file")
    # Marks may run over several lines, to their semicolon.
    sed -e ':more' -e "/^ *$mark/{" -e '/;/!{' -e N -e 'b more' -e '}' -e d -e '}' "$file" \
        >"$folder/unmarked/$name"
    cp "$file" "$folder/marked/$name"
    if ! grep -q "^ *$mark" "$file" || grep -q "$mark" "$folder/unmarked/$name"; then
        echo "FAIL $file: its marks were not found, or not removed"
        status=1
        continue
    fi
    for arch in $archs; do
        failed=0
        for copy in marked unmarked; do
            $nvcc -gencode "arch=compute_${arch#sm_},code=$arch" -cubin \
                -o "$folder/$copy.cubin" "$folder/$copy/$name" || failed=1
        done
        if [ "$failed" -ne 0 ] || ! cmp "$folder/marked.cubin" "$folder/unmarked.cubin"; then
            echo "FAIL $file: its step marks change the code for $arch"
            status=1
        fi
        compared=$((compared + 1))
    done
done
[ "$status" -eq 0 ] && [ "$compared" -gt 0 ] || exit 1
echo "$compared times the same machine code with step marks and without"
