#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Golden tests: what gpumem-report prints of known recordings, byte for byte.
#
#   tests/golden/run.sh BUILD            compares; BUILD holds gpumem-report (or tools/gpumem-report/gpumem-report)
#   UPDATE=1 tests/golden/run.sh BUILD   rewrites what is expected: look at the difference before you commit it
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${1:?usage: tests/golden/run.sh BUILD}
tool=
for place in "$build/gpumem-report" "$build/bin/gpumem-report" "$build/tools/gpumem-report/gpumem-report"; do
	if [ -f "$place" ] && [ -x "$place" ]; then
		tool=$(cd "$(dirname "$place")" && pwd)/gpumem-report
	fi
done
[ -n "$tool" ] || { echo "golden: no gpumem-report in $build" >&2; exit 2; }

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
"${CC:-gcc}" -std=c11 -D_GNU_SOURCE -I"$root/include" -I"$root" -o "$work/make_recordings" \
	"$here/make_recordings.c" "$root/tests/unit/format/recording_builder.c" || exit 2

# The reports name files as they were given: relative ones are the same on every machine.
cd "$work" && ./make_recordings runs foreign || exit 2
head -c 40000 runs/ended.gpucache >foreign/cut.gpucache || exit 2
gunzip -c "$here/recordings/v1.0.gpucache.gz" >v1.0.gpucache || exit 2
unset COLUMNS GPUCACHE_OUTPUT XDG_RUNTIME_DIR TMPDIR
TZ=UTC LC_ALL=C TERM=dumb SOURCE_DATE_EPOCH=1786291200
export TZ LC_ALL TERM SOURCE_DATE_EPOCH
mkdir empty

passed=0
failed=0
# golden NAME ARGUMENT ...: standard output, standard error and exit code in one file.
golden() {
	name=$1
	shift
	{
		echo "\$ gpumem-report $*"
		"$tool" "$@" 2>stderr
		code=$?
		[ -s stderr ] && sed 's/^/[stderr] /' stderr
		echo "[exit $code]"
	} >actual
	if [ -n "${UPDATE:-}" ]; then
		cp actual "$here/$name.txt"
		echo "wrote $name.txt"
	elif cmp -s actual "$here/$name.txt"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "golden: $name differs:"
		diff -u "$here/$name.txt" actual
	fi
}

golden summary_ended   summary runs/ended.gpucache
golden summary_oom     runs/oom.gpucache
golden summary_python  runs/python.gpucache
golden summary_killed  runs/killed.gpucache
golden summary_damaged runs/damaged.gpucache
golden summary_unused  runs/unused.gpucache
golden summary_version runs/version.gpucache
golden summary_color   --color=always -n 2 runs/oom.gpucache
golden summary_json    --json runs/ended.gpucache
golden oom             oom runs/oom.gpucache
golden oom_first       oom 1 runs/oom.gpucache
golden oom_none        oom runs/ended.gpucache
golden oom_json        oom --json runs/oom.gpucache
golden leaks           leaks runs/ended.gpucache
golden leaks_python    leaks runs/python.gpucache
golden leaks_json      leaks --json runs/python.gpucache
golden leaks_none      leaks runs/unused.gpucache
golden list            list runs
golden list_json       list --json runs
golden list_nothing    list empty
golden tags_summary    summary runs/tags.gpucache
golden tags_oom        oom -n 2 runs/tags.gpucache
golden tags_oom_json   oom --json runs/tags.gpucache
golden tags_leaks      leaks -n 9 runs/tags.gpucache
golden tags_leaks_json leaks --json -n 2 runs/tags.gpucache
golden check           check runs/ended.gpucache
golden check_damaged   check runs/damaged.gpucache
golden check_killed    check runs/killed.gpucache
golden symbols         symbols cuCtxSync
golden symbols_none    symbols cudaMalloc
golden symbols_json    symbols --json cuMemGetInfo
golden fail_on         --fail-on=oom,leak leaks -n 1 runs/ended.gpucache
golden usage_command   sumary
golden usage_option    --jsno
golden usage_value     --device=first
golden not_found       runs/nothing.gpucache
golden help            -h

golden newer           leaks foreign/newer.gpucache
golden newer_check     check foreign/newer.gpucache
golden byte_order      foreign/byte_order.gpucache
golden cut             leaks foreign/cut.gpucache
golden cut_check       check foreign/cut.gpucache

# What the first version wrote is read by every later one.
for view in summary oom leaks check; do
	golden "v1.0_$view" "$view" v1.0.gpucache
done

# `symbols` shows each row of the library's table once, and nothing else.
sed -nE 's/^HOOK[A-Z_]*\(([A-Za-z0-9_]+),.*/\1/p' "$root/preload/symbols.def" | sort >wanted
"$tool" symbols | grep '^ ' | tr -s ' ' '\n' | grep . | sort >actual
if cmp wanted actual; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	diff wanted actual
fi

# Names of a real program: with debug information, with a symbol table only, with neither, and where
# the file is not the one that ran.
names() {
	wanted=$1
	shift
	"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-omit-frame-pointer -Wl,--build-id -I"$root/include" -I"$root" "$@" -o symbols \
		"$here/make_symbols.c" "$root/tests/unit/format/recording_builder.c" || exit 2
	./symbols symbols.gpucache $kind
	"$tool" leaks symbols.gpucache >actual
	if grep -q "$wanted" actual; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "golden: no \"$wanted\" in:"
		cat actual
	fi
}
kind=
names '> #0  innermost_function  .*/make_symbols.c:[0-9]' -g
names ' #1  outer_function  symbols' -g0
names '#1  .*/symbols+0x' -g0 -s
kind=spoiled
names '#1  .*/symbols+0x' -g
# Each evaluation loop gives way to the Python frames that it ran.
kind=python
names '> #1  inner  /x/main.py:10' -g
names ' #2  callback_of_a_library' -g
names ' #3  middle  /x/main.py:11' -g
names ' #5  main  ' -g

[ -n "${UPDATE:-}" ] && exit 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
