#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# release.sh VERSION: tests the wheel and the Debian package in build/, here and in bare systems, and prints their checksums.
#
# The files are of the commit that it names; a release is one with the tag vVERSION and without changes.
set -eu
version=$1
cd "$(dirname "$0")/../.."
deb=$(echo build/gpucache_"$version"_*.deb)
wheel=$(echo build/gpucache-"$version"-*.whl)

tests/package/run.py wheel auditwheel older libunwind package
tests/package/bare.sh bookworm "$wheel" "$deb"
# The oldest that Debian still serves: glibc 2.31.
tests/package/bare.sh bullseye "$wheel"
python3 -B tools/package/linked.py build/release/portable

grep -q "^## $version (" CHANGELOG.md || echo "release.sh: CHANGELOG.md has no section $version" >&2
commit=$(git describe --always --dirty --match "v$version" 2>/dev/null || echo unknown)
[ "$commit" = "v$version" ] || echo "release.sh: this is $commit, not the tag v$version: a trial" >&2
(cd build && sha256sum "$(basename "$wheel")" "$(basename "$deb")") | tee "build/gpucache-$version.sha256"
