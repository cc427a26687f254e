#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh [BUILD_DIR]: the main job on a simulated GPU of 8 GiB, as `make demo` shows it.
#
# A training program that keeps every step's loss runs until the GPU is full.  The demo shows the program's own
# output, gpucache's short form, and what gpumem-report says about the recording.  It leaves the recording in the
# default place, and exits with 0 only if it saw all three.
set -eu

top=$(dirname "$(readlink -f "$0")")/..
top=$(readlink -f "$top")
build=${1:-$top/build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/gpucache-demo.XXXXXX")
trap 'rm -rf "$dir"' EXIT

fail() {
	printf 'demo: %s\n' "$1" >&2
	exit 1
}

show() { printf '\n$ %s\n' "$1"; }

show 'build/gpucache-run --sim 8GiB -- build/programs/train --oom --width 1024'
status=0
"$build/gpucache-run" --sim 8GiB -- "$build/programs/train" --oom --width 1024 >"$dir/out" 2>"$dir/err" || status=$?
cat "$dir/out"
cat "$dir/err"

[ "$status" -eq 1 ] || fail "the program ended with status $status; 1 was expected"
grep -q 'cudaMalloc of .* failed: out of memory (2)' "$dir/err" ||
	fail "the program's own message is missing"
grep -q 'OUT OF MEMORY' "$dir/err" || fail "gpucache's short form is missing"
echo '(exit status 1: the program met its own out-of-memory error, as without gpucache)'
pid=$(sed -n 's/.*OUT OF MEMORY.* - pid \([0-9]*\),.*/\1/p' "$dir/err")

# Select the recording by pid: the newest failure may be another program's.
show "build/gpumem-report $pid"
"$build/gpumem-report" --color=never "$pid" >"$dir/report" || fail "gpumem-report ended with status $?"
cat "$dir/report"
grep -q 'contexts' "$dir/report" || fail "the report does not say what contexts take"
grep -q 'remember_loss' "$dir/report" || fail "the report does not name the function that holds the memory"

cat <<'END'

What next:
  build/gpumem-report oom                          the failed request in full; -h lists all commands
  build/gpucache-run --sim 8GiB -- YOUR_PROGRAM    a simulated GPU; without --sim, the real one
  make                                             the other tools, and the simulated libraries that PyTorch needs
END
