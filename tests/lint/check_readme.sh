#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_readme.sh [--table] [TOP]: the README says what is true.
#
#   1 its option table, between <!-- options --> and <!-- /options -->, is the one that
#     src/config/options.def gives;  --table prints that one, to be pasted
#   2 each command of its code blocks, in lines that start with "$ ", exists: a target of the
#     Makefile, a tool of this repository, or a program that every system has
set -eu
table_only=no
if [ "${1:-}" = --table ]; then
	table_only=yes
	shift
fi
cd "${1:-$(dirname "$0")/../..}"

option_table() {
	echo '| option | type | default | what it does |'
	echo '| --- | --- | --- | --- |'
	awk '/^OPTION\(/ {
		row = $0
		sub(/^OPTION\([ \t]*/, "", row)
		name = row; sub(/[ \t]*,.*/, "", name)
		sub(/^[^,]*,[ \t]*/, "", row)
		type = row; sub(/[ \t]*,.*/, "", type)
		# The strings of a row: the default, the choices where there are any, the help.
		n = 0
		while (match(row, /"[^"]*"/)) {
			text[++n] = substr(row, RSTART + 1, RLENGTH - 2)
			row = substr(row, RSTART + RLENGTH)
		}
		kind = tolower(type)
		if (type == "ENUM") {
			kind = text[2]
			gsub(/\|/, ", ", kind)
		}
		value = text[1] == "" ? "" : "`" text[1] "`"
		print "| `" name "` | " kind " | " value " | " text[n] " |"
	}' src/config/options.def
}

if [ $table_only = yes ]; then
	option_table
	exit 0
fi

status=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
option_table >"$dir/expected"
sed -n '/^<!-- options -->$/,/^<!-- \/options -->$/p' README.md | grep '^|' >"$dir/found" || true
if ! diff "$dir/found" "$dir/expected" >"$dir/diff"; then
	echo "README.md: the option table is not what src/config/options.def says (< README, > options.def);"
	echo "README.md: tests/lint/check_readme.sh --table prints the right one"
	cat "$dir/diff"
	status=1
fi

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
	git | cd | sudo | python | python3 | ls | cat | echo | pkg-config | gcc | man | export) return 0 ;;
	./* | YOUR_PROGRAM | train | nvcc) return 0 ;;
	*) [ -e "tools/$(basename "$1")" ] ;;
	esac
}

awk '/^```/ { inside = !inside; next } inside && /^\$ / { print substr($0, 3) }' README.md >"$dir/commands"
while read -r line; do
	# Words of the form NAME=value before the command are its environment.
	command=$(printf '%s\n' "$line" | sed -E 's/^([A-Z_]+=[^ ]* +)*//')
	word=${command%% *}
	rest=${command#"$word"}
	rest=${rest# }
	if ! known_command "$word" "${rest%% *}"; then
		echo "README.md: \"$line\": there is no such command or target"
		status=1
	fi
done <"$dir/commands"
exit $status
