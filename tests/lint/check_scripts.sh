#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_scripts.sh: shellcheck has nothing to say about any script.
set -eu
git ls-files 2>/dev/null | while read -r file; do
	[ -f "$file" ] && head -1 "$file" | grep -q '^#!/bin/sh' && echo "$file"
done | xargs shellcheck -x
