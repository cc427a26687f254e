#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR: runs every benchmark of BUILD_DIR/tests/bench, prints a table, and writes build/bench.csv; then
# compares the allocator, PyTorch's rules and no cache on devices of many sizes.
#
# A row has its value and its baseline from the same run: only their ratio can be compared between machines.  A value is
# a median, of turns or of rounds.  rows.txt explains each row and has the target of its ratio.  A missed target is
# shown but is not a failure, because a busy machine may miss it.
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
"$build/tests/bench/replay/gpumem-replay" --sizes -p gpucache -p pytorch -p none tests/bench/traces/*.csv.gz -g training -g inference -g random -g pipeline ||
	status=1
exit $status
