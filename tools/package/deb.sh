#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh TREE VERSION OUT: makes a Debian package in OUT from TREE, which `make install DESTDIR=TREE PREFIX=/usr`
# filled; prints its name.  DEBFULLNAME and DEBEMAIL name the maintainer.
set -eu
tree=$(readlink -f "$1")
version=$2
out=$(readlink -f "$3")
if [ -n "${CROSS:-}" ]; then
	DEB_HOST_ARCH=$(dpkg-architecture -f -t "$("${CROSS}gcc" -dumpmachine)" -q DEB_HOST_ARCH)
	export DEB_HOST_ARCH
fi
arch=${DEB_HOST_ARCH:-$(dpkg --print-architecture)}
here=$(dirname "$(readlink -f "$0")")
top=$here/../..
doc=$tree/usr/share/doc/gpucache
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || echo 0)}"

maintainer="${DEBFULLNAME:-gpucache built here} <${DEBEMAIL:-gpucache@localhost}>"

mkdir -p "$doc" "$tree/DEBIAN" "$tree/usr/share/lintian/overrides"
find "$tree/usr" -type f \( -name '*.so*' -o -path '*/bin/gpumem-*' -o -name gpucache-wait -o -name gpucache-probe \) -exec "${CROSS:-}strip" --strip-unneeded --remove-section=.comment {} +
"${CROSS:-}strip" --strip-debug "$tree"/usr/lib/*/libgpucache.a
find "$tree/usr/lib" -type f -name '*.so*' -exec chmod 644 {} +
gzip -9n "$tree"/usr/share/man/man?/*
cp "$top/README.md" "$doc/"
cp -r "$top/docs" "$doc/"
awk -v version="$version" -v maintainer="$maintainer" -f "$here/changelog.awk" "$top/CHANGELOG.md" >"$doc/changelog" || {
	echo "deb.sh: CHANGELOG.md has no section \"## $version (YYYY-MM-DD)\"" >&2
	exit 1
}
gzip -9n "$doc/changelog"
gzip -9nc "$top/CHANGELOG.md" >"$doc/CHANGELOG.md.gz"
cat >"$doc/copyright" <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gpucache

Files: *
Copyright: 2026 the authors of gpucache
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
END
cat >"$tree/usr/share/lintian/overrides/gpucache" <<'END'
# The loader gives an auditor its own namespace: linked against libc, it would load a second one into every process.  The gate is
# linked with nothing, so that any C library takes it.
gpucache: library-not-linked-against-libc *
gpucache: shared-library-lacks-prerequisites *
# One package for the library, its header and the tools: the library is preloaded by its plain name.
gpucache: shared-library-lacks-version *libgpucache-audit.so*
gpucache: shared-library-lacks-version *libgpucache-gate.so*
gpucache: non-dev-pkg-with-shlib-symlink *
# The simulated libraries have NVIDIA's names, in a folder outside the loader's search path.
gpucache: package-name-doesnt-match-sonames *
# The default address of a local build; DEBEMAIL replaces it.
gpucache: bogus-mail-host *
gpucache: bogus-mail-host-in-debian-changelog *
END

# The libraries that the binaries are linked with, and libunwind, which is opened at run time.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: gpucache\n\nPackage: gpucache\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$tree"/usr/bin/gpumem-report "$tree"/usr/bin/gpumem-replay \
	"$tree"/usr/lib/*/libgpucache.so.0 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ]
printf 'libgpucache 0 gpucache (>= %s)\n' "$version" >"$tree/DEBIAN/shlibs"
printf 'activate-noawait ldconfig\n' >"$tree/DEBIAN/triggers"
(cd "$tree" && find usr -type f -exec md5sum {} +) >"$tree/DEBIAN/md5sums"
cat >"$tree/DEBIAN/control" <<END
Package: gpucache
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk "$tree/usr" | cut -f 1)
Depends: $depends, libunwind8
Section: devel
Priority: optional
Multi-Arch: no
Description: caching GPU memory allocator that says who holds the memory
 A library to preload into unmodified CUDA programs. It serves cudaMalloc from
 a cache, records all GPU memory of the process in a file that survives
 SIGKILL, and explains out-of-memory. gpumem-report reads the recording; a
 simulated GPU replaces a missing one.
END
find "$tree" -type d -exec chmod 755 {} +
file=$out/gpucache_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$tree" "$file" >/dev/null
echo "$file"
