#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh FORMATTED HEADERS LIBRARY TIDIED: runs every lint, a line each; the last line is "N passed, N failed".
set -u
formatted=$1
headers=$2
library=$3
tidied=$4
dir=$(dirname "$0")
passed=0
failed=0

lint() { # NAME COMMAND...
	name=$1
	shift
	if said=$("$@" 2>&1); then
		echo "ok $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		printf '%s\n' "$said" | head -40
		failed=$((failed + 1))
	fi
}

# Both variables are lists of words.
# shellcheck disable=SC2086
lint format clang-format --dry-run --Werror $formatted
# shellcheck disable=SC2086
lint headers "$dir/check_headers.sh" $headers
# shellcheck disable=SC2086
lint tidy "$dir/check_tidy.sh" $tidied
lint heads "$dir/check_heads.sh" src preload tools
lint layers "$dir/check_layers.sh" src/LAYERS src preload tools
lint sizes "$dir/check_sizes.sh" 600 include src preload tools tests
[ ! -d "$(dirname "$library")/depth" ] || lint depth "$dir/check_depth.py" "$(dirname "$library")/depth"
lint exports "$dir/check_exports.sh" "$library" preload/symbols.def include/gpucache.h
lint standins "$dir/check_standins.sh" "$(dirname "$library")/simcuda"
lint words "$dir/check_words.sh"
lint facts "$dir/check_facts.sh"
lint docs "$dir/check_docs.sh"
lint pages "$dir/check_pages.py"
lint abi "$dir/check_abi.sh"
lint scripts "$dir/check_scripts.sh"
lint self "$dir/selftest.sh"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
