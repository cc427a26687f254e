#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_facts.sh [TOP]: each fact of src/why/facts.def is set somewhere, and judged by or said somewhere.
set -eu
cd "${1:-$(dirname "$0")/../..}"
status=0
from_record=$(sed -nE 's/^FROM\([A-Z]+, +([a-z0-9_]+),.*/->\1 = it/p' src/why/facts.def)
setters=$from_record$(cat src/why/*.c src/oom/*.c src/runtime/rescue/*.c tools/gpumem-report/why/*.c 2>/dev/null | tr '\n' ' ')
users=$(cat src/why/causes.def src/why/judge.c src/why/derive.c)
names=$(sed -nE 's/^(FACT\([A-Z]+, +|FROM\()[A-Z]+, +([a-z0-9_]+),.*/\2/p' src/why/facts.def)
for name in $names; do
	printf '%s' "$setters" | grep -qE "(->|\.)${name}[[:space:]]*=[^=]" || { echo "facts.def: nobody sets $name"; status=1; }
	printf '%s' "$users" | grep -qE "\b${name}\b" || { echo "facts.def: nobody judges by $name or says it"; status=1; }
done
exit $status
