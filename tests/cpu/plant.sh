#!/bin/sh
# plant.sh KERNEL.FAULT.sed FOLDER: the kernel, and the headers with the rest of its code, as the
# script changes them, go to FOLDER; the kernel as kernel.cpp. Fails unless the script changes
# exactly one line of them all, in its place: a fault that is gone from the source is not tested.
set -e
script=$1 folder=$2
kernel=$(basename "$script")
kernel=cuda/kernels/${kernel%%.*}.cu
changed=0
mkdir -p "$folder/cuda/kernels"
for file in "$kernel" cuda/tile.h cuda/row_softmax.h; do
    sed -E -f "$script" "$file" >"$folder/planted"
    lines=$(diff "$file" "$folder/planted" | grep -cE '^[<>]' || true)
    changed=$((changed + lines))
    { echo "#line 1 \"$file\""; cat "$folder/planted"; } >"$folder/$file"
done
rm "$folder/planted"
if [ "$changed" -ne 2 ]; then # the line before and after
    echo "$script: $changed lines of before and after differ, not one of each" >&2
    exit 1
fi
sed -E -z -f cuda/cpu/translate.sed "$folder/$kernel" >"$folder/kernel.cpp"
