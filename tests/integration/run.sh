#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR [WORD...]: the whole product, on programs that know nothing of it.
#
# One line a case: "ok", "FAIL" or "skip", its name, and why; the last line counts them.  With WORDs,
# only the cases whose name has one of them.  Exit status 1 when a case failed.
exec python3 -B "$(dirname "$0")/runner.py" "$@"
