#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_words.sh [TOP]: no file has unfinished parts, or a path of one machine.
#
# The patterns are written so that this file does not match itself.  NEEDSWORK: with a reason is the
# only marker that the house allows.
set -eu
cd "${1:-$(dirname "$0")/../..}"

files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . -type f -not -path './build/*' -not -path './.git/*'
	fi
}

status=0
list=$(files)
find_words() { # WHY PATTERN [GREP_OPTION...]
	why=$1
	pattern=$2
	shift 2
	# -I: text only.  A file that was deleted and not yet committed is no error.
	found=$(printf '%s\n' "$list" | tr '\n' '\0' | xargs -0 grep -InE "$@" -e "$pattern" 2>/dev/null || true)
	[ -n "$found" ] || return 0
	printf '%s\n' "$found" | sed "s|\$|   <- $why|"
	status=1
}

find_words 'unfinished' '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b'
find_words 'unfinished' '\b(not implemente[d]|placeholde[r]([^=]|$)|for no[w],)' -i
find_words 'a path of one machine' '(^|[^A-Za-z0-9_.-])/(wor[k]|far[m]|roo[t]|hom[e]/([^mu/]|m[^e]|u[^s])[a-z]*|User[s])(/|\b)'
exit $status
