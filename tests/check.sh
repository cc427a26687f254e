#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh: runs every test and lint; the last line is "N passed, N failed".
#
#   release   unit, model and fault tests, the driver's conformance, storms, programs (also killed), golden reports, exports,
#             HTML pages, the live view, fleets, hostile files and users, lints
#   debug     the tests again with every check on (GPC_CHECK_LEVEL=2, -Og)
#   asan      again with the address and undefined-behaviour sanitizers; fuzzes every reader
#   tsan      again with the thread sanitizer and fewer operations, without single-threaded tests (NO_THREADS)
#
# The caller's variables, umask and folder do not matter: clean_up and leave_blanks.
# VARIANTS="release asan" selects variants.  `check.sh long` runs the tests that take too long for every change.  Test
# binaries run in parallel, one per core; scripts run alone.  A failed test shows its whole output, a passed one a line
# with its seconds.
set -u
cd "$(dirname "$0")/.." || exit 2
jobs=$(nproc)
passed=0
failed=0
log=build/check.log
NO_THREADS='/tests/(unit/(format|oom|config)|fault)/'
export PYTHONDONTWRITEBYTECODE=1

count() { # PASSED FAILED
	passed=$((passed + $1))
	failed=$((failed + $2))
}

# Runs one cmocka program and counts the summary lines of its groups; a crash is one failure.  Runs in a process of its
# own, prints all output at once at the end, and writes "GOOD BAD" to a file in $counts.
run_binary() { # VARIANT BINARY
	log=$counts/$(printf '%s' "$2" | tr / _)
	start=$(date +%s)
	timeout "${SECONDS_EACH:-900}" "$2" >"$log" 2>&1 </dev/null
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
	[ "$status" -ne 0 ] || [ "$((good + bad))" -gt 0 ] || bad=1 # a program without a test
	{
		printf '%s %-7s %s: %d (%d s)\n' "$([ "$bad" -eq 0 ] && echo 'ok  ' || echo FAIL)" \
			"$1" "${2#build/"$1"/}" "$good" $(($(date +%s) - start))
		[ "$bad" -eq 0 ] || tail -40 "$log"
	} >"$log.said"
	flock "$counts" cat "$log.said"
	echo "$good $bad" >"$log.count"
}

# Runs test programs in parallel; one that leaves no count is a failure.
run_binaries() { # VARIANT BINARY...
	variant=$1
	shift
	counts=$(mktemp -d)
	export counts
	printf '%s\n' "$@" >"$counts/list"
	xargs -P "$jobs" -n 1 sh tests/check.sh binary "$variant" <"$counts/list"
	missing=$(($(wc -l <"$counts/list") - $(find "$counts" -name '*.count' | wc -l)))
	[ "$missing" -eq 0 ] || echo "FAIL $variant: $missing of the tests did not run"
	# shellcheck disable=SC2046
	count $(cat "$counts"/*.count | awk '{ good += $1; bad += $2 } END { print good + 0, bad + 0 }')
	count 0 "$missing"
	rm -rf "$counts"
}

# Runs a script whose last line is "N passed, N failed".
run_script() { # NAME COMMAND...
	name=$1
	shift
	start=$(date +%s)
	timeout "${SECONDS_EACH:-900}" "$@" >"$log" 2>&1 </dev/null
	status=$?
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
	good=$(printf '%s' "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
	bad=$(printf '%s' "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
	[ -n "$line" ] || { good=0 bad=1; }
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	count "$good" "$bad"
	printf '%s %-7s %s: %d (%d s)\n' "$([ "$bad" -eq 0 ] && echo 'ok  ' || echo FAIL)" "$variant" "$name" "$good" \
		$(($(date +%s) - start))
	[ "$bad" -eq 0 ] || grep -v '^ok' "$log" | tail -60
}

# tests/programs stand for programs that we did not compile, so they are built without sanitizers.
build() { # VARIANT
	case $1 in
	release) extra="programs kill-bins doors gpu-programs storm-bins" ;;
	asan) extra="fuzz-bin storm-bins" ;;
	*) extra=storm-bins ;;
	esac
	# shellcheck disable=SC2086
	make --no-print-directory -j"$jobs" VARIANT="$1" all $extra tests >"$log" 2>&1 && return 0
	grep -vE '^  (CC|AR|LINK) ' "$log" | tail -40
	echo "FAIL $1 does not build"
	count 0 1
	return 1
}

# Tests that take too long for every change.
long() {
	export SECONDS_EACH=3600 OPS=20000000 PAIRS=all
	variant=release
	build release || return
	run_binaries release build/release/tests/prove/prove_reuse build/release/tests/fault/test_pairs
	run_script kill tests/kill/run.py build/release --runs 300
	run_script scenes tests/scenes/run.py build --n 260 --seed "${SEED:-2}"
	run_script driver tests/fault/driver.py build --all
	run_script html tests/html/run.py build --browser
	variant=asan
	build asan || return
	run_script fuzz build/asan/tests/fuzz/fuzz -s "${FUZZ_SECONDS:-300}" tests/fuzz/corpus build/fuzz
	run_script storm env SECONDS_STORM=600 tests/storm/run.py build/asan
	variant=tsan
	build tsan || return
	run_script storm env SECONDS_STORM=600 tests/storm/run.py build/tsan
}

check() { # VARIANT
	variant=$1
	build "$variant" || return
	case $variant in
	tsan) export OPS=20000 TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" ;;
	*) unset OPS TSAN_OPTIONS ;;
	esac
	tests=$(make --no-print-directory -s VARIANT="$variant" list-tests | tr ' ' '\n')
	[ "$variant" != tsan ] || tests=$(printf '%s\n' "$tests" | grep -vE "$NO_THREADS")
	# shellcheck disable=SC2086
	run_binaries "$variant" $tests
	# Fixed seeds: a failure is reproducible.
	[ "$variant" != asan ] || run_script fuzz build/asan/tests/fuzz/fuzz -n "${FUZZ_INPUTS:-1500}" -S 1 -S 2 tests/fuzz/corpus build/fuzz
	run_script storm tests/storm/run.py "build/$variant"
	[ "$variant" = release ] || return
	run_script programs tests/integration/run.sh build
	run_script kill tests/kill/run.py build/release --runs 30
	run_script doors tests/doors/run.sh build/release
	run_script gpu tests/gpu/run.sh --sim --out build/gpu
	run_script golden tests/golden/run.sh build
	run_script export tests/export/run.py build
	run_script html tests/html/run.py build
	run_script live tests/live/run.py build
	run_script fleet tests/fleet/run.py build
	run_script strangers tests/strangers/run.py build
	run_script files tests/fault/run.py build
	run_script driver tests/fault/driver.py build
	run_script replay tests/bench/test_replay.sh build/release
	run_script scenes tests/scenes/run.py build --n 39
	run_script docs tests/docs/run.py build
	run_script package tests/package/run.py
	run_script lints make --no-print-directory -s lint
}

# Removes what the caller's shell would tell the tests: they use no variables of its own but these.
clean_up() {
	for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
		case $name in
		PATH | PWD | HOME | USER | LOGNAME | MAKE* | MFLAGS | CC | CXX | CUDA_HOME | CCACHE_* | PYENV_* | PYTHONDONTWRITEBYTECODE) ;;
		VARIANTS | SECONDS_EACH | OPS | PAIRS | SEED | FUZZ_* | GPUCACHE_TEST_* | MEMORY_VIZ* | SPEEDSCOPE_SCHEMA) ;;
		*) unset "$name" ;;
		esac
	done
	umask 022
}

# The loader splits LD_PRELOAD at blanks and colons, so below such a folder nothing can be preloaded: checks a copy.
leave_blanks() {
	case $PWD in
	*[\ :]*)
		copy=$(mktemp -d) || exit 2
		trap 'rm -rf "$copy"' EXIT
		cp -a . "$copy/gpucache" && cd "$copy/gpucache" || exit 2
		echo "checked in $copy/gpucache, because this folder has a blank or a colon in its name"
		;;
	esac
}

case ${1:-} in
binary) # called by run_binaries
	run_binary "$2" "$3"
	exit 0
	;;
*)
	clean_up
	leave_blanks
	mkdir -p build
	;;
esac
case ${1:-} in
long) long ;;
*)
	for variant in ${VARIANTS:-release debug asan tsan}; do
		check "$variant"
	done
	;;
esac
rm -f "$log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
