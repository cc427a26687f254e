#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_abi.sh: compares our own CUDA ABI, the prototypes of symbols.def, and the functions of the stand-in libraries
# with the real headers, if a toolkit is installed.
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

# Compiles as in the build, but with the toolkit's headers before ours, which stand in for those that it lacks.  The driver
# and NVML declare what they need themselves.
for file in src/sim/lib*/*.c; do
	case $file in src/sim/libcuda/* | src/sim/libnvidia-ml/*) continue ;; esac
	${CC:-gcc} -std=c11 -D_GNU_SOURCE -D__CUDA_API_VERSION_INTERNAL -Wall -Wextra -Werror -Wno-deprecated-declarations \
		-Wno-unused-parameter \
		-fsyntax-only -Isrc -I. -isystem "$cuda/include" -idirafter src/sim/include "$file"
done

# Every error that according to cuda.h ends the process or the context must be a STICKY row.
list=$(mktemp)
trap 'rm -f "$list"' EXIT
tr -s ' \n*' ' ' <"$cuda/include/cuda.h" | sed 's#/ #\n#g' |
	sed -n '/must be terminated and relaunched\|and must be destroyed/{n;s/^\(CUDA_ERROR_[A-Z_]*\) .*/\1/p}' >"$list"
while read -r name; do
	grep -q "STICKY($name," src/driver/cuda_results.def && continue
	echo "src/driver/cuda_results.def: $name is not STICKY: cuda.h says that it ends the process"
	exit 1
done <"$list"
[ -s "$list" ]
