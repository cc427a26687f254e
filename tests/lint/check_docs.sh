#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_docs.sh [--table options|causes] [TOP]: the README and docs/ agree with the sources.
#
#   1 tables between <!-- NAME --> and <!-- /NAME --> are what the sources give: options (docs/user/OPTIONS.md) by
#     src/config/options.def, causes (docs/user/OUT-OF-MEMORY.md) by src/why/causes.def;  --table prints one, to be pasted
#   2 each command of a code block, in lines that start with "$ ", exists: a target of the Makefile, a tool of this
#     repository, or a program that every system has.  tests/docs/run.py runs them
#   3 docs/ARCHITECTURE.md: each path in backquotes exists, there or below src/; its table of waits has each file and
#     function of src/alloc and src/runtime that calls event_wait or context_sync
#   4 the README has at most 200 lines, and its times ("1.03 times") are those of docs/user/PERFORMANCE.md
#   5 docs/user/CLIENTS.md is as its runs make it
#   6 no page installs gpucache by its bare name, which nobody owns on PyPI yet
set -eu
here=$(dirname "$(readlink -f "$0")")
table=''
if [ "${1:-}" = --table ]; then
	table=$2
	shift 2
fi
cd "${1:-$(dirname "$0")/../..}"

options_table() {
	awk -f "$here/../../tools/package/options.awk" src/config/options.def
}

causes_table() {
	echo '| cause | what it means | what to do |'
	echo '| --- | --- | --- |'
	sed -nE '/^CAUSE\(/ { N; s/^CAUSE\([A-Z_]+, [A-Z]+, "([^"]*)", "([^"]*)",\n\t"([^"]*)"\)$/| \1 | \2 | \3 |/; p; }' src/why/causes.def |
		grep -v '^| unknown'
}

print_table() { # NAME
	case $1 in
	options) options_table ;;
	causes) causes_table ;;
	esac
}

if [ -n "$table" ]; then
	print_table "$table"
	exit 0
fi

status=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

compare_table() { # NAME FILE SOURCE
	print_table "$1" >"$dir/expected"
	sed -n "/^<!-- $1 -->\$/,/^<!-- \\/$1 -->\$/p" "$2" 2>/dev/null | grep '^|' >"$dir/found" || true
	if ! diff "$dir/found" "$dir/expected" >"$dir/diff"; then
		echo "$2: the table of $1 is not what $3 says (< $2, > $3);"
		echo "$2: tests/lint/check_docs.sh --table $1 prints the right one"
		cat "$dir/diff"
		status=1
	fi
}
compare_table options docs/user/OPTIONS.md src/config/options.def
compare_table causes docs/user/OUT-OF-MEMORY.md src/why/causes.def

makefiles=$(find . -name Makefile -not -path './build/*' -o -name '*.mk' -not -path './build/*')
known_command() { # WORD NEXT_WORD
	case $1 in
	make)
		case $2 in
		'' | *=* | -*) return 0 ;;
		esac
		# shellcheck disable=SC2086
		grep -qE "^([a-z-]+ )*$2( [a-z-]+)*:" $makefiles
		;;
	git | cd | sudo | apt | python | python3 | pip | ls | cat | echo | pkg-config | gcc | g++ | cmake | man | export | docker | kubectl | grep) return 0 ;;
	./* | YOUR_PROGRAM | train | nvcc | torchrun) return 0 ;;
	sbatch | sacct | podman | curl | jq | amtool | install) return 0 ;;
	/usr/lib/gpucache/slurm/*) [ -e "tools/slurm/$(basename -- "$1")" ] ;;
	*) [ -e "tools/$(basename -- "$1")" ] ;;
	esac
}

pages=$(find README.md docs examples -name '*.md' 2>/dev/null || true)
for file in $pages; do
	[ -e "$file" ] || continue
	awk '/^```/ { inside = !inside; next } inside && /^\$ / { print substr($0, 3) }' "$file" >"$dir/commands"
	while read -r line; do
		# Words of the form NAME=value before the command are its environment.
		command=$(printf '%s\n' "$line" | sed -E 's/^([A-Z_0-9]+=[^ ]* +)*//')
		word=${command%% *}
		rest=${command#"$word"}
		rest=${rest# }
		if ! known_command "$word" "${rest%% *}"; then
			echo "$file: \"$line\": there is no such command or target"
			status=1
		fi
	done <"$dir/commands"
done

page=docs/ARCHITECTURE.md
# shellcheck disable=SC2016 # backquotes of Markdown
grep -oE '`[a-z_./]+/[a-z_]+\.(c|h|def|py|sh)`' $page | tr -d '`' | sort -u >"$dir/paths" || true
while read -r path; do
	[ -e "$path" ] || [ -e "src/$path" ] || {
		echo "$page: names $path, which is not there"
		status=1
	}
done <"$dir/paths"
# FILE FUNCTION of each wait: the last line at the margin before the call that names a function.
find src/alloc src/runtime -name '*.c' -exec awk '
	/^[a-z].*[(]/ { match($0, /[a-z_]+[(]/); name = substr($0, RSTART, RLENGTH - 1) }
	/->(event_wait|context_sync)[(]/ { print FILENAME, name }' {} + | sort -u >"$dir/waits"
while read -r file function; do
	grep -F "| \`${file#src/}\` |" $page | grep -qF "\`$function\`" || {
		echo "$page: \"Where the host waits\" lacks $function of $file"
		status=1
	}
done <"$dir/waits"

if [ "$(wc -l <README.md)" -gt 200 ]; then
	echo "README.md: has more than 200 lines; the rest goes to docs/"
	status=1
fi
grep -oE '[0-9]+\.[0-9]+ times' README.md | sed 's/ times//' >"$dir/numbers" || true
while read -r number; do
	grep -qF "$number" docs/user/PERFORMANCE.md || {
		echo "README.md: $number times is in no table of docs/user/PERFORMANCE.md"
		status=1
	}
done <"$dir/numbers"
if [ -e docs/user/CLIENTS.md ] && ! python3 -B "$here/../clients/table.py" docs/user/CLIENTS.md; then
	status=1
fi
# shellcheck disable=SC2086
if grep -nE 'pip3? install( -[^ ]+)* gpucache([^-/_a-z]|$)' $pages | grep .; then
	echo "pip install gpucache: the name is not ours on PyPI; say ./build/gpucache-*.whl"
	status=1
fi
exit $status
