#!/bin/sh
# Compiles every kernel file for every GPU given, prints registers, shared memory, spills and
# warpgroup products (wgmma) of each kernel. Fails if a file does not compile without a warning, a
# kernel spills registers, ptxas says that it serialized wgmma or ignored setmaxnreg, or a kernel of
# a file in $WARPGROUP_FILES has no warpgroup product.
# Usage: check_kernels.sh "NVCC AND FLAGS" "sm_80 sm_90a ..." FILE.cu ...
nvcc=$1
archs=$2
shift 2
# The products are counted in the machine code where the toolkit can show it, else in the PTX that
# ptxas was given.
cuobjdump=$(command -v cuobjdump || command -v "$(dirname "${nvcc%% *}")/cuobjdump")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
status=0
kernels=0

fail() {
    echo "FAIL $1"
    status=1
}

demangle() {
    cu++filt 2>/dev/null <"$1" >"$2" || c++filt <"$1" >"$2"
}

# A line a kernel: how many warpgroup products, its mangled name.
count_products() {
    if [ -n "$cuobjdump" ]; then
        "$cuobjdump" -sass "$work/cubin" | awk '
            $1 == "Function" { name = $3; count[name] = 0 }
            /HGMMA/ { count[name]++ }
            END { for (name in count) print count[name], name }'
    else
        awk '/\.entry/ { name = $NF; sub(/\(.*/, "", name); count[name] = 0 }
             /wgmma\.mma_async/ { count[name]++ }
             END { for (name in count) print count[name], name }' "$work"/*.ptx
    fi
}

printf '%-8s %-48s %9s %7s %6s %6s\n' GPU kernel registers shared spills wgmma
for file in "$@"; do
    case " $WARPGROUP_FILES " in
    *" $file "*) least=1 ;;
    *) least=0 ;;
    esac
    for arch in $archs; do
        virtual=compute_${arch#sm_}
        rm -f "$work"/*
        if ! $nvcc -gencode "arch=$virtual,code=$arch" -Xptxas -v -cubin -o "$work/cubin" \
            --keep --keep-dir "$work" "$file" >"$log" 2>&1; then
            cat "$log"
            fail "$file does not compile for $arch"
            continue
        fi
        # Messages with a number are about performance lost, and no warnings to ptxas.
        grep -E 'ptxas [a-z]+ *: \(C[0-9]+\)' "$log" &&
            fail "$file: ptxas could not do for $arch what the source asks for"
        count_products >"$work/mangled"
        demangle "$work/mangled" "$work/products"
        # Per kernel, ptxas prints its mangled name, its spills, then its registers.
        demangle "$log" "$log.names"
        awk -v arch="$arch" -v least="$least" '
            function short(name)
            {
                sub(/^void /, "", name); sub(/\(.*/, "", name)
                gsub(/\(int\)/, "", name)
                return name
            }
            FNR == NR { products[substr($0, index($0, " ") + 1)] = $1; next }
            /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
            /spill stores/ { spills = $5 + $9 }
            /Used .* registers/ {
                registers = shared = 0
                for (i = 1; i <= NF; i++) {
                    if ($i == "registers,") registers = $(i - 1)
                    if ($i ~ /^smem/) shared = $(i - 2)
                }
                printf "%-8s %-48s %9d %7d %6d %6d\n", arch, short(name), registers, shared,
                       spills, products[name]
                if (spills > 0) spilled = 1
                if (products[name] + 0 < least) without = 1
                count++
            }
            END { print count + 0 > "/dev/stderr"; exit spilled + 2 * without }' \
            "$work/products" "$log.names" 2>"$log"
        found=$?
        [ $((found % 2)) -eq 0 ] || fail "$file spills registers on $arch"
        [ $((found / 2)) -eq 0 ] || fail "$file: a kernel for $arch has no warpgroup product"
        kernels=$((kernels + $(cat "$log")))
    done
done
if [ -n "$WARPGROUP_FILES" ]; then
    [ -n "$cuobjdump" ] && counted="the machine code" || counted="the PTX, as there is no cuobjdump"
    echo "warpgroup products counted in $counted"
fi
echo "$kernels kernels checked"
[ "$status" -eq 0 ] && [ "$kernels" -gt 0 ]
