#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_headers.sh HEADER...: each header compiles alone, with CC and CFLAGS.
set -eu
compiler=${CC:-gcc}
flags=${CFLAGS:--std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -Isrc -I.}
status=0
for header in "$@"; do
	# Flags are words: splitting is meant.
	# shellcheck disable=SC2086
	$compiler $flags -Wno-unused-function -Wno-unused-const-variable -x c -fsyntax-only \
		-include "$header" /dev/null || {
		echo "$header: does not compile alone"
		status=1
	}
done
exit $status
