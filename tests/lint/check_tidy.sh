#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh FILE...: runs clang-tidy (.clang-tidy) on the code that runs in the host process.
set -eu
printf '%s\n' "$@" | xargs -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- \
	-std=c11 -D_GNU_SOURCE -Iinclude -Isrc -I. -DGPC_CHECK_LEVEL=1 2>/dev/null
