#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_standins.sh FOLDER: each simulated library exports the functions of its table, and those of NVIDIA's own library
# if a client test has installed it (build/clients).
set -eu
folder=$1
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

exported() { # FILE
	nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

find -L build/clients/*/lib -name 'lib*.so*' 2>/dev/null >"$work/real" || true
for table in src/sim/*/names.txt; do
	word=$(basename "${table%/names.txt}")
	awk -f src/sim/standin/names.awk "$table" >"$work/rows"
	! grep -vE '^(OWN|CREATE|DESTROY|STREAM|WORK|RESULT|NOT)\([A-Za-z_0-9]+\)$|^CODES\((\.[a-z_]+=[0-9]+(, |\)$))+' "$work/rows" || status=1
	sed '/^CODES/d; s/.*(//; s/)//' "$work/rows" | sort >"$work/table"
	[ -z "$(uniq -d "$work/table")" ] || {
		echo "$table: more than once: $(uniq -d "$work/table" | tr '\n' ' ')"
		status=1
	}
	for name in $(make --no-print-directory -s sonames WORD="$word"); do
		exported "$folder/$name" >"$work/exported"
		diff "$work/table" "$work/exported" >"$work/diff" || {
			echo "$folder/$name and $table (< named, > exported):"
			grep '^[<>]' "$work/diff"
			status=1
		}
		# Names without the library's prefix are not public.
		prefix=$(make --no-print-directory -s exports WORD="$word" | sed 's/\*; */|/g; s/|$//')
		grep "/$name\$" "$work/real" | while read -r real; do
			exported "$real" | grep -E "^($prefix)" | comm -23 - "$work/table" |
				sed "s|\$| is in $real and not in $table|"
		done >"$work/missing"
		[ ! -s "$work/missing" ] || {
			cat "$work/missing"
			status=1
		}
	done
done
exit $status
