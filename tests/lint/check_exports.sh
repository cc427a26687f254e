#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh LIBRARY SYMBOLS_DEF HEADER...: the library exports exactly what is declared.
#
# Declared are the functions of each row of SYMBOLS_DEF (`KIND(symbol, ...`, `BOTH(KIND, symbol, variant, ...`), the
# GPUCACHE_API functions of the public headers, the functions of libc and of PyTorch that we stand before, and the door
# of NVTX.
# Compares both ways: a hook that is declared but missing would silently miss its calls, and an exported helper would
# replace a function of the host program.
set -eu
library=$1
symbols=$2
shift 2

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
	sed -nE 's/^BOTH\([A-Z_]+, ([A-Za-z0-9_]+), (pt[sd][sz]),.*/\1\n\1_\2/p
		s/^[A-Z][A-Z0-9_]*\([ 	]*(cu[A-Za-z0-9_]*).*/\1/p' "$symbols"
	for header in "$@"; do
		sed -nE 's/^.*GPUCACHE_API.*[ *](gpucache_[a-z0-9_]+)\(.*/\1/p' "$header"
	done
	printf '%s\n' dlclose dlsym __assert_fail _exit _Exit abort exit quick_exit InitializeInjectionNvtx2
	torch=$(dirname "$symbols")/hooks_torch.c
	[ ! -e "$torch" ] || sed -nE 's/^#define [A-Z_0-9]+ +"(_ZN3c10[A-Za-z0-9_]+)".*/\1/p' "$torch"
} | sort -u >"$dir/declared"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $NF); print $NF }' |
	grep -vE '^(_init|_fini|_edata|_end|__bss_start)$' | sort -u >"$dir/exported"

status=0
for name in $(comm -23 "$dir/declared" "$dir/exported"); do
	echo "$library: $name is declared and not exported"
	status=1
done
for name in $(comm -13 "$dir/declared" "$dir/exported"); do
	echo "$library: $name is exported and declared nowhere"
	status=1
done
# Without a version the loader would not reject a library too old for a program linked with it.
for name in $(nm -D --defined-only "$library" | sed -nE 's/.* (gpucache_[a-z0-9_]+)$/\1/p'); do
	echo "$library: $name has no version: preload.map does not list it"
	status=1
done
exit $status
