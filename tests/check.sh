#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh: every test and lint; the last line is "N passed, N failed".
#
#   release   unit, model and fault tests, the driver's conformance, the programs, also killed, the golden reports,
#             the lints
#   debug     the tests again with every check on (GPC_CHECK_LEVEL=2, -Og)
#   asan      again with the address and undefined-behaviour sanitizers; every reader fed damaged input
#   tsan      again with the thread sanitizer, fewer operations
#
# VARIANTS="release asan" chooses.  What failed is shown whole; what passed is one line.
set -u
cd "$(dirname "$0")/.." || exit 2
jobs=$(nproc)
passed=0
failed=0
log=build/check.log
mkdir -p build

count() { # PASSED FAILED
	passed=$((passed + $1))
	failed=$((failed + $2))
}

# A program of cmocka groups: its own closing lines are counted; a crash is one failure.
run_binary() { # VARIANT BINARY
	start=$(date +%s)
	timeout 300 "$2" >"$log" 2>&1 </dev/null
	status=$?
	good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	case $2 in
	*/conformance/* | */prove/*)
		good=$(grep -c '^ok' "$log")
		bad=$(grep -c '^not ok' "$log")
		;;
	esac
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$status" -ne 0 ] || [ "$((good + bad))" -gt 0 ] || bad=1 # a test that tests nothing
	count "$good" "$bad"
	printf '%s %-7s %s: %d (%d s)\n' "$([ "$bad" -eq 0 ] && echo 'ok  ' || echo FAIL)" \
		"$1" "${2#build/"$1"/}" "$good" $(($(date +%s) - start))
	[ "$bad" -eq 0 ] || tail -40 "$log"
}

# A script whose last line is "N passed, N failed".
run_script() { # NAME COMMAND...
	name=$1
	shift
	timeout 600 "$@" >"$log" 2>&1 </dev/null
	status=$?
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
	good=$(printf '%s' "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
	bad=$(printf '%s' "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
	[ -n "$line" ] || { good=0 bad=1; }
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	count "$good" "$bad"
	printf '%s %-7s %s: %d\n' "$([ "$bad" -eq 0 ] && echo 'ok  ' || echo FAIL)" "$variant" "$name" "$good"
	[ "$bad" -eq 0 ] || grep -v '^ok' "$log" | tail -60
}

# The programs stand for what we did not compile: a sanitizer has no business in them.
build() { # VARIANT
	case $1 in
	release) extra="programs kill-bins doors gpu-programs" ;;
	asan) extra=fuzz-bin ;;
	*) extra= ;;
	esac
	# shellcheck disable=SC2086
	make --no-print-directory -j"$jobs" VARIANT="$1" all $extra tests >"$log" 2>&1 && return 0
	grep -vE '^  (CC|AR|LINK) ' "$log" | tail -40
	echo "FAIL $1 does not build"
	count 0 1
	return 1
}

for variant in ${VARIANTS:-release debug asan tsan}; do
	build "$variant" || continue
	case $variant in
	tsan) export OPS=20000 TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" ;;
	*) unset OPS TSAN_OPTIONS ;;
	esac
	for binary in $(make --no-print-directory -s VARIANT="$variant" list-tests); do
		run_binary "$variant" "$binary"
	done
	[ "$variant" != asan ] || run_script fuzz build/asan/tests/fuzz/fuzz -s "${FUZZ_SECONDS:-30}" tests/fuzz/corpus build/fuzz
	[ "$variant" = release ] || continue
	run_script programs tests/integration/run.sh build
	run_script kill tests/kill/run.py build/release --runs 30
	run_script doors tests/doors/run.sh build/release
	run_script gpu tests/gpu/run.sh --sim --out build/gpu
	run_script golden tests/golden/run.sh build
	run_script replay tests/bench/test_replay.sh build
	run_script lints make --no-print-directory -s lint
done
rm -f "$log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
