#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_heads.sh FOLDER...: every .c begins, after its licence, with a comment that says what it does and how.
set -eu
# An awk program: the shell must not expand it.
# shellcheck disable=SC2016
find "$@" -name '*.c' | sort | xargs awk '
function wrong(text) {
	print FILENAME ": " text
	bad = 1
}
FNR == 2 && !/^\/\*/ {
	wrong("begins without a comment that says how it works")
	nextfile
}
FNR == 2 { words = 0 }
FNR >= 2 {
	line = $0
	words += gsub(/[A-Za-z][A-Za-z]+/, "", line)
}
FNR >= 2 && /\*\// {
	if (words < 5)
		wrong("its head has " words " words: what is the idea?")
	nextfile
}
END { exit bad }
'
