#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_words.sh [TOP]: no file has unfinished parts, or a path of one machine; no comment of the product has a phrase
# for which the field, or the glossary of docs/ARCHITECTURE.md, has a word.
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
# In comments of C only.
comment='(/\*|^[[:blank:]]*\*).*'
list=$(printf '%s\n' "$list" | grep -E '^(\./)?(src|preload|include|tools)/.*\.([chS]|def)$' || true)
find_words 'if' "$comment"'\b(True|False|NULL|0) where '
find_words 'slow path of' "$comment"'\bBehind gpc_'
find_words 'accounting' "$comment"'\b(into|out of) the books\b' -i
find_words 'coalesces' "$comment"'\bmerges with its (free )?neighbour'
find_words 'unknown' "$comment"': not known;? \*/'
find_words 'next to, in addition to, or concurrently with' "$comment"'\b[Bb]eside\b'
find_words 'code has no persons: name the caller, the thread, the user' "$comment"'\b(whoever|somebody)\b' -i
find_words 'a noun: the thread, call or block that' '(/\*|^[[:blank:]]*\*) +(Who|What) (is|was|asks|gets|takes|waits|holds|has) [^?]*$'
find_words 'may access' "$comment"'\blet at\b' -i
find_words 'assumes' "$comment"'\btak(e|es|en) .*for granted' -i
find_words 'on average' "$comment"'\bin the mean\b( |\.|,)'
find_words 'lookup' "$comment"'\blook-ups?\b' -i
exit $status
