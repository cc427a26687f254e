#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_mirror.sh [TOP]: each src/FOLDER/FILE.c or src/FOLDER/ROOM/FILE.c has a tests/unit/FOLDER/test_FILE.c, and each
# test has a source.
#
# Without a test of their own, because they are data or are tested through the files that use them:
trivial='
src/base/status.c
'
set -eu
cd "${1:-$(dirname "$0")/../..}"
status=0
for source in src/*/*.c src/*/*/*.c; do
	[ -e "$source" ] || continue
	test=${source#src/}
	test=tests/unit/${test%%/*}/test_$(basename "$source")
	[ -e "$test" ] && continue
	# Shared libraries, tested by tests/conformance and tests/programs.
	case $source in
	src/simcuda/*) continue ;;
	esac
	case $trivial in
	*"$source"*) continue ;;
	esac
	echo "$source: has no $test"
	status=1
done
for test in tests/unit/*/test_*.c; do
	name=$(basename "$test")
	folder=$(basename "$(dirname "$test")")
	# tests/unit/FOLDER may also mirror preload/ or tools/FOLDER.
	header=${name#test_}
	header=src/$folder/${header%.c}.h
	# test_FILE_PART.c: a part of the tests of FILE.c, which would be too long in one file.
	part=${name#test_}
	part=${part%_*}.c
	for source in src/"$folder"/*/"${name#test_}" "src/$folder/$part" src/"$folder"/*/"$part"; do
		[ ! -e "$source" ] || continue 2
	done
	[ -e "$header" ] || [ -e "src/$folder/${name#test_}" ] || [ -e "$folder/${name#test_}" ] || [ -e "tools/$folder/${name#test_}" ] || {
		echo "$test: tests no file"
		status=1
	}
done
exit $status
