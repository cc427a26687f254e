#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_sizes.sh FILE_LINES FOLDER...: no file has more than FILE_LINES lines, and no C function more than 70.
#
# A C function is the text between a { and a }, each alone on its line in column 0; only the lines between count.
set -eu
max_file=$1
max_function=70
shift
# An awk program: the shell must not expand it.
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
	# The name before the first parenthesis of the last such line is the function; of a test (unit.h), the one behind it.
	title = $0
	sub(/^TEST[A-Z_]*\(/, "", title)
	sub(/[(),].*/, "", title)
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
