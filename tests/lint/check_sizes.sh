#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_sizes.sh FILE_LINES FOLDER...: no file is longer, and no C function than 70 lines.
#
# A C function is what stands between a { and a } that are alone in column 0; the lines between
# them count.
set -eu
max_file=$1
max_function=70
shift
# The program is awk's: nothing in it is for the shell.
# shellcheck disable=SC2016
find "$@" -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.S' \) | sort |
	xargs awk -v max_file="$max_file" -v max_function="$max_function" '
function end_of_file() {
	if (lines > max_file) {
		print name ": " lines " lines; at most " max_file
		bad = 1
	}
}
FNR == 1 {
	end_of_file()
	name = FILENAME
	start = 0
}
{
	lines = FNR
}
name !~ /\.[ch]$/ { next }
/^[a-zA-Z_].*\(/ {
	# The name before the first parenthesis of the last such line is the function.
	title = $0
	sub(/\(.*/, "", title)
	sub(/.*[ *]/, "", title)
}
/^\{/ { start = FNR }
/^\}/ {
	if (start && FNR - start - 1 > max_function) {
		print name ":" start ": " title "() has " FNR - start - 1 " lines; at most " max_function
		bad = 1
	}
	start = 0
}
END {
	end_of_file()
	exit bad
}'
