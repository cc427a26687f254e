#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR: see run.py.
exec python3 -B "$(dirname "$0")/run.py" "$@"
