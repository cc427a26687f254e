#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh: runs every test and lint; the last line is "N passed, N failed".
#
#   release   unit, model and fault tests, the driver's conformance, storms, programs (also killed), golden reports, exports,
#             HTML pages, the live view, fleets, hostile files and users, lints
#   asan      the tests again with every check on (GPC_CHECK_LEVEL=2) and the address and undefined-behaviour sanitizers;
#             fuzzes every reader
#   tsan      again with the thread sanitizer and fewer operations, without single-threaded tests (NO_THREADS)
#
# The caller's variables, umask and folder do not matter: clean_up and leave_blanks.
# VARIANTS="release asan" selects variants.  `check.sh long` runs the tests that take too long for every change, and the
# variant debug: every check, without a sanitizer.  Tests run in parallel, one per core.  A failed test shows the end of its
# output, a passed one a line with its seconds.
set -u
cd "$(dirname "$0")/.." || exit 2
jobs=$(nproc)
passed=0
failed=0
log=build/check.log
NO_THREADS='^tests/(unit/(format|oom|config)|fault)/'
export PYTHONDONTWRITEBYTECODE=1

count() { # PASSED FAILED
	passed=$((passed + $1))
	failed=$((failed + $2))
}

# Runs one test program or script.  In a process of its own: prints all it says at once at the end, and writes "GOOD BAD" to
# a file in $counts.  cmocka prints a line per group and result, a script "N passed, N failed" at last; a crash, or nothing
# tested, is one failure.
run_one() { # VARIANT NAME COMMAND...
	variant=$1
	name=$2
	shift 2
	log=$counts/$(printf '%s' "$name" | tr / _)
	start=$(date +%s)
	timeout "${SECONDS_EACH:-1800}" "$@" >"$log" 2>&1 </dev/null
	status=$?
	case $name in
	tests/conformance/* | tests/prove/*)
		good=$(grep -c '^ok' "$log")
		bad=$(grep -c '^not ok' "$log")
		;;
	tests/*)
		good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
		bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
		;;
	*)
		line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
		good=$(printf '%s' "${line:-0}" | sed 's/ .*//')
		bad=$(printf '%s' "${line:-0 passed, 0 failed}" | sed 's/.* \([0-9]*\) failed.*/\1/')
		;;
	esac
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$status" -ne 0 ] || [ "$((good + bad))" -gt 0 ] || bad=1
	{
		printf '%s %-7s %s: %d (%d s)\n' "$([ "$bad" -eq 0 ] && echo 'ok  ' || echo FAIL)" \
			"$variant" "$name" "$good" $(($(date +%s) - start))
		[ "$bad" -eq 0 ] || grep -v '^ok' "$log" | tail -60
	} >"$log.said"
	flock "$counts" cat "$log.said"
	echo "$good $bad" >"$log.count"
}

# Runs what stdin names, a line "NAME COMMAND..." each, one per core; what leaves no count is a failure.
run_all() { # VARIANT
	counts=$(mktemp -d)
	export counts
	cat >"$counts/list"
	xargs -P "$jobs" -L 1 sh tests/check.sh one "$1" <"$counts/list"
	missing=$(($(wc -l <"$counts/list") - $(find "$counts" -name '*.count' | wc -l)))
	[ "$missing" -eq 0 ] || echo "FAIL $1: $missing of the tests did not run"
	# shellcheck disable=SC2046
	count $(cat "$counts"/*.count | awk '{ good += $1; bad += $2 } END { print good + 0, bad + 0 }')
	count 0 "$missing"
	rm -rf "$counts"
}

# tests/programs stand for programs that we did not compile, so they are built without sanitizers.
build() { # VARIANT
	case $1 in
	release) extra="programs kill-bins doors gpu-programs storm-bins lint-inputs" ;;
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
	build release || return
	run_all release <<-END
		tests/prove/prove_reuse build/release/tests/prove/prove_reuse
		tests/fault/test_pairs build/release/tests/fault/test_pairs
		kill tests/kill/run.py build/release --runs 300
		scenes tests/scenes/run.py build --n 260 --seed ${SEED:-2}
		driver tests/fault/driver.py build --all
		html tests/html/run.py build --browser
	END
	build asan || return
	run_all asan <<-END
		fuzz build/asan/tests/fuzz/fuzz -s ${FUZZ_SECONDS:-300} tests/fuzz/corpus build/fuzz
		storm env SECONDS_STORM=600 tests/storm/run.py build/asan
	END
	build tsan || return
	run_all tsan <<-END
		storm env SECONDS_STORM=600 tests/storm/run.py build/tsan
	END
	check debug
}

# The longest first.
list_scripts() { # VARIANT
	[ "$1" != release ] || cat <<-END
		programs tests/integration/run.sh build
		lints make --no-print-directory -s lint
		files tests/fault/run.py build
		package tests/package/run.py
		scenes tests/scenes/run.py build --n 39
	END
	# Fixed seeds: a failure is reproducible.
	[ "$1" != asan ] || cat <<-END
		fuzz build/asan/tests/fuzz/fuzz -n ${FUZZ_INPUTS:-1500} -S 1 -S 2 tests/fuzz/corpus build/fuzz
	END
	echo "storm tests/storm/run.py build/$1"
	[ "$1" != release ] || cat <<-END
		kill tests/kill/run.py build/release --runs 30
		doors tests/doors/run.sh build/release
		gpu tests/gpu/run.sh --sim --out build/gpu
		golden tests/golden/run.sh build
		export tests/export/run.py build
		html tests/html/run.py build
		live tests/live/run.py build
		fleet tests/fleet/run.py build
		untrusted tests/untrusted/run.py build
		driver tests/fault/driver.py build
		replay tests/bench/test_replay.sh build/release
		docs tests/docs/run.py build
	END
}

list_binaries() { # VARIANT
	make --no-print-directory -s VARIANT="$1" list-tests | sed "s,^build/$1/\(.*\),\1 &,"
}

check() { # VARIANT
	build "$1" || return
	{
		list_scripts "$1"
		list_binaries "$1"
	} >build/check.list
	unset OPS TSAN_OPTIONS
	if [ "$1" = tsan ]; then
		export OPS=20000 TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp"
		grep -vE "$NO_THREADS" build/check.list >build/check.some
		mv build/check.some build/check.list
	fi
	# Not by a pipe, which would count in a process of its own.
	run_all "$1" <build/check.list
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
one) # called by run_all
	shift
	run_one "$@"
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
	for variant in ${VARIANTS:-release asan tsan}; do
		check "$variant"
	done
	;;
esac
rm -f "$log" build/check.list
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
