#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_abi.sh: our own CUDA ABI and the prototypes of symbols.def against the real cuda.h, where there is one.
set -eu
cuda=${CUDA_HOME:-/usr/local/cuda}
if [ ! -e "$cuda/include/cuda.h" ]; then
	echo "no cuda.h under $cuda: nothing to compare with"
	exit 0
fi
for file in tests/conformance/check_*.c; do
	${CC:-gcc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-deprecated-declarations -fsyntax-only \
		-Iinclude -Isrc -I. -isystem "$cuda/include" "$file"
done
