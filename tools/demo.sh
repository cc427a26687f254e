#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh [BUILD_DIR]: the main job on a simulated GPU of 8 GiB, as `make demo` shows it.
#
# A training program that keeps every step's loss runs until the GPU is full.  Shown: what the
# program prints, gpucache's short form of why, and gpumem-report's answer from the recording.
# Exit status 0 only if all of these were there.
set -eu

top=$(dirname "$(readlink -f "$0")")/..
top=$(readlink -f "$top")
build=${1:-$top/build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/gpucache-demo.XXXXXX")

fail() {
	printf 'demo: %s\n' "$1" >&2
	exit 1
}

show() { printf '\n$ %s\n' "$1"; }

show 'gpucache-run --sim 8GiB train --oom'
status=0
"$top/tools/gpucache-run" --sim 8GiB -o "$dir/demo-%p.gpucache" -- \
	"$build/programs/train" --oom --width 1024 >"$dir/out" 2>"$dir/err" || status=$?
cat "$dir/out"
cat "$dir/err"

[ "$status" -eq 1 ] || fail "the program ended with status $status; 1 was expected"
grep -q 'cudaMalloc of .* failed: out of memory (2)' "$dir/err" ||
	fail "the program's own message is missing"
grep -q 'OUT OF MEMORY' "$dir/err" || fail "gpucache's short form is missing"
echo '(exit status 1: the program met its own out-of-memory error, as without gpucache)'
for recording in "$dir"/demo-*.gpucache; do
	[ -s "$recording" ] || fail "no recording was written to $dir"
done

show "gpumem-report $recording"
"$build/gpumem-report" --color=never "$recording" >"$dir/report" || fail "gpumem-report ended with status $?"
cat "$dir/report"
grep -q 'remember_loss' "$dir/report" || fail "the report does not name the function that holds the memory"

printf '\nNext: build/gpucache-run --sim 8GiB YOUR_PROGRAM   (on a machine with a GPU: without --sim)\n'
