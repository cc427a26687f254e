#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libunwind.sh OUT OBJECT: builds libunwind as the shared object OUT, linked with OBJECT, and OUT.version.  CC is the compiler.
#
# The source is the one of the distribution's package; LIBUNWIND_SOURCE names a release's tar file to take instead.  The
# name in OUT is not libunwind's own, so that a program that loads another libunwind gets that.
set -eu
out=$(readlink -f "$1")
object=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The repositories of the distribution, for sources; a fresh image does not know them.
find_repositories() {
	# apt's words, not the shell's.
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Component: main' |
		grep -E 'debian|ubuntu' | sort -u >"$work/sources.list"
	[ -s "$work/sources.list" ]
}

# With lists of its own: any user may, and the system's stay as they are.
fetch() {
	find_repositories || { apt-get -q update >"$work/log" 2>&1 && find_repositories; } || return
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	for step in update 'source --download-only libunwind'; do
		# shellcheck disable=SC2086
		(cd "$work" && apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
			-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root $step) >"$work/log" 2>&1 || return
	done
}

source=${LIBUNWIND_SOURCE:-}
if [ -z "$source" ]; then
	: >"$work/log"
	if ! command -v apt-get >/dev/null 2>&1 || ! fetch; then
		cat "$work/log" >&2
		echo "libunwind.sh: no source of libunwind here; LIBUNWIND_SOURCE=FILE names a release's tar file" >&2
		exit 1
	fi
	source=$(echo "$work"/libunwind_*.orig.tar.?z)
fi
mkdir "$work/source"
tar xf "$source" -C "$work/source" --strip-components=1
cd "$work/source"
{
	./configure CC="${CC:-cc}" --disable-static --disable-tests --disable-documentation --disable-coredump --disable-ptrace \
		--disable-setjmp --disable-cxx-exceptions --disable-minidebuginfo &&
		make -C src libunwind.la LDFLAGS="-release gpucache -Wl,$object,--no-as-needed,-l:libpthread.so.0,--gc-sections"
} >"$work/log" 2>&1 || {
	tail -40 "$work/log" >&2
	exit 1
}
cp "$(echo src/.libs/libunwind-gpucache*.so.?.*)" "$out"
sed -n "s/^PACKAGE_VERSION='\(.*\)'/\1/p" configure >"$out.version"
cp COPYING "$out.copying"
