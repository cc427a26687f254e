#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_scripts.sh: runs shellcheck on every script.
set -eu
git ls-files 2>/dev/null | while read -r file; do
	[ -f "$file" ] && head -1 "$file" | grep -q '^#!/bin/sh' && echo "$file"
done | xargs shellcheck -x
