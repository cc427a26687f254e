#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR [WORD...]: tests the whole product on programs that know nothing of it.
#
# Prints a line per case: "ok", "FAIL" or "skip", its name, and why; the last line counts them.  With WORDs, runs only
# the cases whose name contains one.  Exit status 1 if a case failed.
exec python3 -B "$(dirname "$0")/runner.py" "$@"
