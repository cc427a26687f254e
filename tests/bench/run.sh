#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR: runs every benchmark of BUILD_DIR/tests/bench, prints a table, and writes build/bench.csv;
# then what the allocator, PyTorch's rules and no cache at all do on devices of all sizes.
#
# Each row has its baseline from the same run beside it: only the ratio means anything on another machine.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

csv=build/bench.csv
mkdir -p build
echo name,value,unit,baseline,ratio >"$csv"
status=0
for bench in "$build"/tests/bench/bench_*; do
	case $bench in *.o | *.d) continue ;; esac
	[ -x "$bench" ] || continue
	"$bench" >>"$csv" || {
		echo "run.sh: $(basename "$bench") failed" >&2
		status=1
	}
done
awk -F, '
{ printf "%-32s %12s %-6s %12s %9s\n", $1, $2, $3, $4, $5 }
NR == 1 { print "" }' "$csv"
echo
"$build/gpumem-replay" --sizes -p gpucache -p pytorch -p none tests/bench/traces/*.csv.gz -g training -g inference -g random -g pipeline ||
	status=1
exit $status
