# SPDX-License-Identifier: Apache-2.0
"""linked.py FOLDER: the table of what is linked into the binaries that make PORTABLE=1 put there, with licences.

The linker wrote beside each binary which files it read (portable.mk); Debian's package of each names version and copyright.
"""
import json
import os
import re
import subprocess
import sys

# By Debian's source package: the licence of the part that is linked, and the texts that its copyright file refers to.
LICENCES = {
    "elfutils": ("LGPL-3.0-or-later OR GPL-2.0-or-later", ["LGPL-3", "GPL-3", "GPL-2"]),  # libdw, libelf
    "json-c": ("MIT", []),
    "zlib": ("Zlib", []),
    "xz-utils": ("LicenseRef-public-domain", []),  # liblzma
    "bzip2": ("bzip2-1.0.6", []),
    "ncurses": ("X11-distribute-modifications-variant", []),
    "glibc": ("LGPL-2.1-or-later", ["LGPL-2.1"]),  # what starts a program
    "gcc": ("GPL-3.0-or-later WITH GCC-exception-3.1", ["GPL-3"]),  # the same, and helpers of the compiler
    "uthash": ("BSD-1-Clause", []),
    "node-d3": ("ISC", []),  # in the page of `gpumem-report html`
}
# Read by the compiler, not the linker.
READ = ["/usr/include/uthash.h", "/usr/share/nodejs/d3/dist/d3.min.js"]
COMMON = "/usr/share/common-licenses"


class Unknown(Exception):
    """Something is linked of which the licence is not known."""


def files(folder):
    """Of other projects, the archives and objects that were linked."""
    found = set(filter(os.path.exists, READ))
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".linked"):
                with open(os.path.join(where, name)) as file:
                    words = file.read().replace("\\\n", " ").replace(":", " ").split()
                found |= {os.path.realpath(word) for word in words if word.startswith("/usr/") and word.endswith((".a", ".o"))}
    return sorted(found)


def package_of(path):
    """(binary package, source package, version) that Debian has the file from."""
    try:
        owner = subprocess.run(["dpkg", "-S", path], check=True, capture_output=True, text=True).stdout.rsplit(": ", 1)[0]
        said = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", owner], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unknown(f"{path} is linked, and no package of Debian has it") from error
    return (owner.split(":")[0], *said.stdout.split())


def components(folder):
    """A dict by name for each: version, licence, text, purl."""
    found = {}
    for path in files(folder):
        package, source, version = package_of(path)
        source = re.sub(r"^gcc-\d+$", "gcc", source)
        if source not in LICENCES:
            raise Unknown(f"{path} is linked, of {source}, whose licence linked.py does not name")
        licence, texts = LICENCES[source]
        copyrights = [f"/usr/share/doc/{package}/copyright", *(f"{COMMON}/{text}" for text in texts)]
        found.setdefault(source, {"version": version, "licence": licence, "text": "\n".join(map(read, copyrights)),
                                  "purl": f"pkg:deb/debian/{source}@{version}?arch=source"})
    unwind = os.path.join(folder, "libunwind-gpucache.so.8")
    version = read(unwind + ".version").strip()
    found["libunwind"] = {"version": version, "licence": "MIT", "text": read(unwind + ".copying"), "purl": f"pkg:generic/libunwind@{version}"}
    return dict(sorted(found.items()))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sbom(folder, version):
    """The same as CycloneDX has it."""
    listed = [{"type": "library", "name": name, "version": one["version"], "purl": one["purl"], "licenses": [{"expression": one["licence"]}]}
              for name, one in components(folder).items()]
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                       "metadata": {"component": {"type": "library", "name": "gpucache", "version": version, "purl": f"pkg:pypi/gpucache@{version}",
                                                  "licenses": [{"expression": "Apache-2.0"}]}},
                       "components": listed}, indent=1)


def main():
    for name, one in components(sys.argv[1]).items():
        print(f"{name:<10} {one['version']:<24} {one['licence']}")


if __name__ == "__main__":
    main()
