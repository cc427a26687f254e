# SPDX-License-Identifier: Apache-2.0
"""wheel.py TREE BINARIES VERSION OUT: makes a wheel in OUT from TREE, which `make PORTABLE=1 install DESTDIR=TREE PREFIX=/`
filled from the folder BINARIES.  Prints its name.

    gpucache/                    the Python module (python/gpucache)
    gpucache/bin, lib, include   an ordinary installation: gpucache-run finds the library relative to itself
    gpucache/lib/gpucache        besides, libunwind for systems that lack it
    *.data/data/share/man        manual pages: pip puts them where `man` finds them
    *.dist-info/licenses, sboms  of everything that is linked (linked.py)

A binary that needs more than the platform's tag promises (manylinux.py) is named, and there is no wheel.
"""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

import linked
import manylinux

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
METADATA = """\
Metadata-Version: 2.1
Name: gpucache
Version: {version}
Summary: Says why an unmodified CUDA program ran out of GPU memory, and what holds it
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: gpucache {version}\nRoot-Is-Purelib: false\nTag: {tag}\n"
SCRIPTS = ["gpucache-run", "gpumem-report", "gpumem-replay"]


def gather(tree, binaries, stage, version):
    module = os.path.join(stage, "gpucache")
    shutil.copytree(os.path.join(TOP, "python", "gpucache"), module, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("bin", "include", os.path.join("lib", "gpucache")):
        shutil.copytree(os.path.join(tree, name), os.path.join(module, name))
    for name in ("libgpucache.so", "libgpucache-audit.so", "libgpucache-gate.so"):
        shutil.copy(os.path.join(tree, "lib", name), os.path.join(module, "lib", name))
    shutil.copy(os.path.join(binaries, "libunwind-gpucache.so.8"), os.path.join(module, "lib", "gpucache"))
    shutil.copytree(os.path.join(tree, "share", "man"), os.path.join(stage, f"gpucache-{version}.data", "data", "share", "man"))
    for path in manylinux.binaries(module):
        subprocess.run(["strip", "--strip-unneeded", path], check=True)


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def describe(stage, binaries, version, tag):
    info = os.path.join(stage, f"gpucache-{version}.dist-info")
    entries = "".join(f"{name} = gpucache.__main__:{name.replace('-', '_')}\n" for name in SCRIPTS)
    write_text(f"{info}/METADATA", METADATA.format(version=version) + linked.read(os.path.join(TOP, "README.md")))
    write_text(f"{info}/WHEEL", WHEEL.format(version=version, tag=tag))
    write_text(f"{info}/entry_points.txt", "[console_scripts]\n" + entries)
    write_text(f"{info}/licenses/LICENSE", linked.read(os.path.join(TOP, "LICENSE")))
    for name, one in linked.components(binaries).items():
        write_text(f"{info}/licenses/{name}", one["text"])
    write_text(f"{info}/sboms/gpucache.cdx.json", linked.sbom(binaries, version))


def write(stage, path, version):
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for folder, _, files in sorted(os.walk(stage)):
            for name in sorted(files):
                file = os.path.join(folder, name)
                arc = os.path.relpath(file, stage)
                with open(file, "rb") as opened:
                    data = opened.read()
                entry = zipfile.ZipInfo(arc, (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if os.access(file, os.X_OK) else 0o100644) << 16
                wheel.writestr(entry, data)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{arc},sha256={digest},{len(data)}")
        name = f"gpucache-{version}.dist-info/RECORD"
        wheel.writestr(name, "\n".join([*record, f"{name},,"]) + "\n")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    tree, binaries, version, out = sys.argv[1:]
    stage = os.path.join(tree, "stage")
    tag = f"py3-none-{manylinux.TAG}_{os.uname().machine}"
    shutil.rmtree(stage, ignore_errors=True)
    gather(tree, binaries, stage, version)
    faults = manylinux.faults(stage)
    if faults:
        sys.exit("\n".join(f"wheel.py: {fault}" for fault in faults))
    try:
        describe(stage, binaries, version, tag)
    except linked.Unknown as fault:
        sys.exit(f"wheel.py: {fault}")
    path = os.path.join(out, f"gpucache-{version}-{tag}.whl")
    write(stage, path, version)
    print(path)


if __name__ == "__main__":
    main()
