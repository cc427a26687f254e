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
	"$here/make_recordings.c" "$here/make_torch.c" "$root/tests/unit/format/recording_builder.c" || exit 2

# The reports name files as they were given: relative ones are the same on every machine.
cd "$work" && ./make_recordings runs foreign ranks || exit 2
head -c 40000 runs/ended.gpucache >foreign/cut.gpucache || exit 2
unset COLUMNS GPUCACHE_OUTPUT XDG_RUNTIME_DIR TMPDIR
TZ=UTC LC_ALL=C TERM=dumb SOURCE_DATE_EPOCH=1786291200
export TZ LC_ALL TERM SOURCE_DATE_EPOCH
mkdir empty empty_of_gpus && cp runs/unused.gpucache empty_of_gpus

tool_version=$("$tool" -V | sed 's/.* //')
passed=0
failed=0
up_to=
mkdir "$work/sums"
# wide NAME ARGUMENT ...: at 60, 80 and 160 columns no line is wider but for a word that is.
wide() {
	name=$1
	shift
	for columns in 60 80 160; do
		COLUMNS=$columns "$tool" "$@" >printed 2>/dev/null
		if LC_ALL=C.UTF-8 awk -v most=$columns '
			{ gsub(/\033\[[0-9;]*m/, "") }
			length > most { line = $0; sub(/^[ >#0-9]*/, "", line); if (line ~ / / && line !~ /^SUMMARY/) { print; bad = 1 } }
			END { exit bad }' printed; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "golden: $name passes $columns columns"
		fi
	done
}

# golden NAME ARGUMENT ...: standard output, standard error and exit code in one file.
golden() {
	name=$1
	shift
	{
		echo "\$ gpumem-report $*"
		"$tool" "$@" 2>stderr >stdout
		code=$?
		# The next version says the same.
		sed -e "s/\"tool_version\": \"$tool_version\"/\"tool_version\": \"VERSION\"/" -e "${up_to:+/$up_to/,\$d}" stdout
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
	case $name in
	*json* | help | options | symbols* | usage*) ;;
	*) wide "$name" "$@" ;;
	esac
	# -n would leave rows out.
	case " $* " in
	*' -n '*) ;;
	*)
		"$tool" --json "$@" >"$work/sums/$name" 2>/dev/null
		grep -q '"view"' "$work/sums/$name" || rm "$work/sums/$name"
		;;
	esac
}

# golden_why NAME ARGUMENT ...: only up to the advice.  The sections behind it are in oom_torch and in those that are whole.
golden_why() {
	up_to=^REQUEST
	golden "$@"
	up_to=
}

golden summary_ended   summary runs/ended.gpucache
golden summary_oom     runs/oom.gpucache
golden summary_python  runs/python.gpucache
golden summary_killed  runs/killed.gpucache
golden summary_exited  foreign/exited.gpucache
golden leaks_exited    leaks foreign/exited.gpucache
golden summary_damaged runs/damaged.gpucache
golden summary_unused  runs/unused.gpucache
golden summary_version runs/version.gpucache
golden summary_color   --color=always -n 2 runs/oom.gpucache
golden summary_json    --json runs/ended.gpucache
golden summary_library -n 20 libraries.gpucache
golden summary_torch   summary torch.gpucache
golden torch_json      --json torch.gpucache
golden leaks_torch     leaks torch.gpucache
golden oom_torch       oom 1 torch_oom.gpucache
golden oom_torch_limit oom 2 torch_oom.gpucache
golden oom_torch_nccl  oom 3 -n 1 torch_oom.gpucache
golden_why oom_torch_cat     oom 4 -n 1 torch_oom.gpucache
golden_why oom_torch_state   oom 1 -n 1 torch_use.gpucache
golden_why oom_torch_two     oom 2 -n 1 torch_use.gpucache
golden_why oom_torch_keeps   oom 3 -n 1 torch_use.gpucache
golden oom_torch_pinned oom -n 1 torch_pinned.gpucache
golden_why oom_torch_kept    oom 1 -n 1 torch_kept.gpucache
golden_why oom_torch_layers  oom 2 -n 1 torch_kept.gpucache
golden_why oom_torch_loop    oom 3 -n 1 torch_kept.gpucache
golden_why oom_torch_results oom 1 -n 1 torch_results.gpucache
golden_why oom_torch_package oom 2 -n 1 torch_results.gpucache
golden_why oom_torch_tiles   oom 3 -n 1 torch_results.gpucache
golden_why oom_torch_longer  oom 4 -n 1 torch_results.gpucache
golden_why oom_torch_drawn   oom -n 1 torch_drawn.gpucache
golden_why oom_torch_list    oom 1 -n 1 torch_pass.gpucache
golden oom_torch_pass oom 2 -n 1 torch_pass.gpucache
golden_why oom_torch_again   oom 3 -n 1 torch_pass.gpucache
golden_why oom_torch_loaded  oom 4 -n 1 torch_pass.gpucache
golden_why oom_torch_evals   oom 4 -n 1 torch_use.gpucache
golden oom_torch_json  oom --json 1 torch_oom.gpucache
golden oom             oom runs/oom.gpucache
golden oom_first       oom 1 runs/oom.gpucache
golden oom_none        oom runs/ended.gpucache
golden oom_json        oom --json runs/oom.gpucache
golden leaks           leaks runs/ended.gpucache
golden leaks_python    leaks runs/python.gpucache
golden leaks_json      leaks --json runs/python.gpucache
golden leaks_none      leaks runs/unused.gpucache
golden list            list runs
golden list_ranks      list ranks
golden list_ranks_json list --json ranks
golden list_ranks_none list empty_of_gpus
golden list_json       list --json runs
golden list_nothing    list empty
golden tree            tree torch.gpucache
golden tree_turned     tree --bottom-up torch.gpucache
golden tree_peak       tree --at=peak runs/ended.gpucache
golden tree_json       tree --json -n 2 torch.gpucache
golden top             top torch.gpucache
golden top_json        top --json runs/python.gpucache
golden diff            diff runs/python.gpucache torch.gpucache
golden diff_json       diff --json runs/python.gpucache torch.gpucache
golden diff_one        diff runs/python.gpucache
golden diff_peaks      diff runs/ended.gpucache runs/oom.gpucache
golden timeline        timeline runs/oom.gpucache
golden timeline_json   timeline --json runs/oom.gpucache
golden timeline_none   timeline foreign/gpus.gpucache
golden fit             fit torch.gpucache
golden fit_on          fit --on=1GiB torch.gpucache
golden live            live --once runs/killed.gpucache
golden where           --where=train.py:40 torch.gpucache
golden where_leaks     leaks --where=train.py:40 torch.gpucache
golden library         --library=pytorch torch.gpucache
golden thread          leaks --thread=4711 torch.gpucache
golden tag             top --tag=layers runs/tags.gpucache
golden tag_peak        --at=peak --tag=layers runs/tags.gpucache
golden thread_bad      --thread=main runs/tags.gpucache
golden streams         leaks foreign/streams.gpucache
golden streams_json    top --json -n 2 foreign/streams.gpucache
golden streams_one     --stream=0x55d0c8e7700 foreign/streams.gpucache
golden streams_bad     --stream=main foreign/streams.gpucache
golden tags_summary    summary runs/tags.gpucache
golden tags_steps      foreign/steps.gpucache
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
golden options         options
golden fail_on         --fail-on=oom,leak leaks -n 1 runs/ended.gpucache
golden usage_command   sumary
golden usage_far       zzz
golden usage_option    --jsno
golden usage_value     --device=first
golden not_found       runs/nothing.gpucache
golden help            -h

golden newer           leaks foreign/newer.gpucache
golden newer_check     check foreign/newer.gpucache
golden older           foreign/older.gpucache
golden gpus_summary    foreign/gpus.gpucache
golden gpus_leaks      leaks -n 1 foreign/gpus.gpucache
golden gpus_json       --json foreign/gpus.gpucache
golden gpus_oom        oom -d 0 foreign/gpus.gpucache
golden at_peak         --at=peak runs/ended.gpucache
golden at_end          --at=end runs/oom.gpucache
golden at_oom          --at=oom runs/ended.gpucache
golden xla             foreign/xla.gpucache
golden xla_oom         oom foreign/xla.gpucache
golden byte_order      foreign/byte_order.gpucache
golden cut             leaks foreign/cut.gpucache
golden cut_summary     foreign/cut.gpucache
golden cut_check       check foreign/cut.gpucache

if sums=$(python3 "$here/sums.py" sums/*); then
	passed=$((passed + ${sums% sums}))
else
	failed=$((failed + 1))
	echo "golden: $sums"
fi

# `symbols` shows each row of the library's table once, and nothing else.
sed -nE 's/^HOOK[A-Z_]*\(([A-Za-z0-9_]+),.*/\1/p
	s/^BOTH\([A-Z_]+, ([A-Za-z0-9_]+), (pt[sd][sz]),.*/\1\n\1_\2/p' "$root/preload/symbols.def" | sort >wanted
"$tool" symbols | grep '^ ' | tr -s ' ' '\n' | grep . | sort >actual
if cmp wanted actual; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	diff wanted actual
fi

# The machine form shows each counter of the recording.
"$tool" --json runs/ended.gpucache >actual
sed -nE 's/^COUNTER\(.*"(.*)".*/\1/p' "$root/src/model/counters.def" >wanted
while read -r key; do
	if grep -q "^ *\"$key\": " actual; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "golden: no view shows the counter \"$key\""
	fi
done <wanted

# Names of a real program, from what is known of it.
build_symbols() {
	"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-omit-frame-pointer -Wl,--build-id -I"$root/include" -I"$root" "$@" -o symbols \
		"$here/make_symbols.c" "$root/tests/unit/format/recording_builder.c" || exit 2
}

# shows WANTED ARGUMENT ...: `leaks` of the program's recording has a line like WANTED; with a ! before it, none.
shows() {
	wanted=${1#!}
	expected=$([ "$wanted" = "$1" ] && echo 0 || echo 1)
	shift
	# On paper wide enough for the path of any checkout.
	COLUMNS=1000 timeout 60 "$tool" leaks "$@" symbols.gpucache >actual 2>&1
	grep -q "$wanted" actual
	if [ $? -eq "$expected" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "golden: \"$wanted\" is $([ "$expected" = 0 ] && echo not || echo wrongly) in leaks $*:"
		cat actual
	fi
}

# With debug information, inlined calls too; with a symbol table only; with neither.
build_symbols -g && ./symbols symbols.gpucache
shows '> #0  innermost_function  .*/make_symbols.c:[0-9]'
shows '#1  inlined_function  .*/make_symbols.c:[0-9]* (inlined)'
shows '#2  outer_function  .*/make_symbols.c:[0-9]*$'

# The file is another build, or says that it is.
./symbols symbols.gpucache spoiled
shows '#1  .*/symbols+0x'
shows '!make_symbols.c'
shows '^gpumem-report: symbols: build id differs from the recorded one; not used'
./symbols symbols.gpucache && build_symbols -g -DANOTHER_BUILD -O2
shows '!make_symbols.c'
[ "$(grep -c 'symbols: build id differs' actual)" -eq 1 ] || { failed=$((failed + 1)); echo "golden: said more than once"; }

# A pipe in its place is neither waited for nor called another build.
rm symbols && mkfifo symbols
shows '#1  .*/symbols+0x'
shows '!build id differs'
rm symbols

# Packed beside the recording, the symbols need no program; those of another recording are not used.
build_symbols -g && ./symbols symbols.gpucache
"$tool" pack symbols.gpucache 2>stderr && "$tool" pack symbols.gpucache 2>>stderr
if [ $? -eq 5 ] && grep -q 'symbols.gpucache.symbols: names of' stderr && grep -q 'exists; -f' stderr; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "golden: pack said" && cat stderr
fi
mv symbols away
shows '> #0  innermost_function  .*/make_symbols.c:[0-9]'
shows '#1  inlined_function  .*/make_symbols.c:[0-9]* (inlined)'
shows '!no symbols of'
mv symbols.gpucache.symbols packed
shows '#1  .*/symbols+0x'
shows 'no symbols of .*/symbols: not here, or another build'
sed 's/"pid":/"pid":1/' packed >symbols.gpucache.symbols
shows '#1  .*/symbols+0x'
shows '^gpumem-report: symbols.gpucache.symbols: not the symbols of this recording; not used'
for damaged in '{"schema":"gpumem.symbols/1"}' '[' 'null'; do
	echo "$damaged" >symbols.gpucache.symbols
	shows '#1  .*/symbols+0x'
done
sed 's/\[{/[7,{"function":3,"line":"x"},{/g' packed >symbols.gpucache.symbols
shows '#3  inlined_function  .*/make_symbols.c:[0-9]* (inlined)'
mv packed symbols.gpucache.symbols

# Compressed, and from standard input, it is the same recording.
gzip -c symbols.gpucache >zipped.gpucache.gz
for from in zipped.gpucache.gz -; do
	for input in symbols.gpucache zipped.gpucache.gz; do
		if "$tool" leaks --json "$from" <$input 2>stderr | grep -q '"not_freed_bytes": [1-9]'; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "golden: $from <$input is not read" && cat stderr
		fi
	done
done
head -c 300 zipped.gpucache.gz >cut.gpucache.gz
if "$tool" leaks cut.gpucache.gz >actual 2>&1; then
	failed=$((failed + 1))
	echo "golden: half a compressed file is a whole one"
else
	passed=$((passed + 1))
fi
rm -f symbols away symbols.gpucache.symbols

# A recording from another machine: the program is below --sysroot, with or without its debug information.
build_symbols -g && ./symbols symbols.gpucache
mkdir -p "root$work" && mv symbols "root$work"
shows '!make_symbols.c'
shows '#1  inlined_function  .* (inlined)' --sysroot root
objcopy --only-keep-debug "root$work/symbols" symbols.debug && objcopy --strip-all "root$work/symbols"
shows '!make_symbols.c' --sysroot root

# Debug information in a file of its own: below its build id, its path, its name; the program there or not.
build_id=$(readelf -n symbols.debug 2>/dev/null | sed -n 's/.*Build ID: //p')
for place in "debug/.build-id/$(echo "$build_id" | cut -c1-2)/$(echo "$build_id" | cut -c3-).debug" \
	"debug$work/symbols.debug" debug/symbols.debug "root/usr/lib/debug$work/symbols.debug"; do
	mkdir -p "$(dirname "$place")" && cp symbols.debug "$place"
	shows '#1  inlined_function  .* (inlined)' --sysroot root --debug-path nothing:debug
	mv "root$work/symbols" away
	shows '#1  inlined_function  .* (inlined)' --sysroot root --debug-path nothing:debug
	mv away "root$work/symbols" && rm "$place"
	shows '!make_symbols.c' --sysroot root --debug-path nothing:debug
done
mkdir -p debug && cp "root$work/symbols" debug && cp symbols.debug debug
printf 'another build' | dd of=debug/symbols.debug conv=notrunc bs=1 seek=1 2>/dev/null
shows '!make_symbols.c' --sysroot root --debug-path debug
# A pipe of that name is not waited for.
rm debug/symbols.debug && mkfifo debug/symbols.debug
shows '!make_symbols.c' --sysroot root --debug-path debug
rm -rf root debug symbols.debug

build_symbols -g0 && ./symbols symbols.gpucache
shows ' #1  outer_function  symbols'
build_symbols -g0 -s && ./symbols symbols.gpucache
shows '#1  .*/symbols+0x'

# Each evaluation loop gives way to the Python frames that it ran.
build_symbols -g && ./symbols symbols.gpucache python
shows '> #1  inner  /x/main.py:10'
shows ' #2  callback_of_a_library'
shows ' #3  middle  /x/main.py:11'
shows ' #5  main  '

# C++, where there is a compiler for it.
if command -v "${CXX:-g++}" >/dev/null; then
	"${CXX:-g++}" -g -O1 -fno-omit-frame-pointer -c -o cxx.o "$here/make_symbols_cxx.cc" || exit 2
	build_symbols -g cxx.o && ./symbols symbols.gpucache
	shows ' #3  shop::basket::add(void (\*)(void\*), void\*)'
	shows 'make_symbols_cxx\.cc:[0-9]* (inlined)'
	shows ' #4  void shop::basket::grow<void\*>(void (\*)(void\*), void\*)'
fi

[ -n "${UPDATE:-}" ] && exit 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
