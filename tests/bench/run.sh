#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR: runs every benchmark of BUILD_DIR/tests/bench, prints a table, and writes build/bench.csv;
# then what the allocator, PyTorch's rules and no cache at all do on devices of all sizes.
#
# Each row has its baseline from the same run beside it: only the ratio means anything on another machine.  A value is a
# median, of turns or of rounds; rows.txt has the target of each ratio, and what the row means.  A missed target is
# shown and is no failure: a busy machine misses them.
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
awk -F, -v rows=tests/bench/rows.txt -f tests/bench/table.awk "$csv" || status=1
echo
"$build/gpumem-replay" --sizes -p gpucache -p pytorch -p none tests/bench/traces/*.csv.gz -g training -g inference -g random -g pipeline ||
	status=1
exit $status
