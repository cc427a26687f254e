#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [--sim] [--build DIR] [--out DIR] [--seconds N] [--only WORD]...: the tests that need a real GPU.
#
# For a machine with an NVIDIA GPU, perhaps without our packages and without network: uses the build shipped in build/
# (with build/lib/libunwind.so.8 if the machine lacks it), or builds if it can.  Without a GPU it says so and ends with
# status 0. Writes results.json, results.txt and oom_report.txt into one folder: --out, else $OUT, else
# tests/gpu/results/<date>.
#
# --sim runs the same steps on the simulated GPU, to test this script, and writes into build/gpu-sim/<date>; --seconds
# bounds the whole run.
exec python3 -B "$(dirname "$0")/suite.py" "$@"
