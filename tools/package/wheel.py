# SPDX-License-Identifier: Apache-2.0
"""wheel.py TREE VERSION OUT: makes a wheel in OUT from TREE, which `make install DESTDIR=TREE PREFIX=/` filled.
Prints its name.

    gpucache/           the Python module (python/gpucache)
    gpucache/bin, lib   an ordinary installation: gpucache-run finds the library relative to itself
    gpucache/ext        the libraries that gpumem-report is linked with, and libunwind: for systems that lack them

The platform's tag names the newest glibc that any of the binaries requires.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# Not packed: every glibc system has these, and a process must not load a second copy.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)[-.]")
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


def linked_with(path):
    """Yields (soname, path) of each library that the file is linked with, except SYSTEM."""
    out = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    for name, file in re.findall(r"^\s*(\S+) => (/\S+)", out, re.M):
        if not SYSTEM.match(name):
            yield name, file


def is_binary(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def gather(tree, stage):
    module = os.path.join(stage, "gpucache")
    shutil.copytree(os.path.join(TOP, "python", "gpucache"), module, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(os.path.join(tree, "bin"), os.path.join(module, "bin"))
    os.makedirs(os.path.join(module, "lib"))
    for name in ("libgpucache.so", "libgpucache-audit.so", "libgpucache-gate.so"):
        shutil.copy(os.path.join(tree, "lib", name), os.path.join(module, "lib", name))
    shutil.copytree(os.path.join(tree, "lib", "gpucache"), os.path.join(module, "lib", "gpucache"))
    shutil.copytree(os.path.join(tree, "include"), os.path.join(module, "include"))
    ext = os.path.join(module, "ext")
    os.makedirs(ext)
    wanted = dict(linked_with(os.path.join(tree, "bin", "gpumem-report")))
    unwind = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"libunwind\.so\.8 .*x86-64.* => (\S+)", unwind) or re.search(r"libunwind\.so\.8 .* => (\S+)", unwind)
    if found:
        os.makedirs(os.path.join(ext, "unwind"))
        shutil.copy(found[1], os.path.join(ext, "unwind", "libunwind.so.8"))
        for name, file in linked_with(found[1]):
            shutil.copy(file, os.path.join(ext, "unwind", name))
    for name, file in wanted.items():
        shutil.copy(file, os.path.join(ext, name))
    for folder, _, files in os.walk(module):
        for name in files:
            path = os.path.join(folder, name)
            if is_binary(path):
                subprocess.run(["strip", "--strip-unneeded", path], check=True)


def platform_tag(stage):
    newest = (2, 17)
    machine = os.uname().machine
    for folder, _, files in os.walk(stage):
        for name in files:
            if is_binary(os.path.join(folder, name)):
                with open(os.path.join(folder, name), "rb") as file:
                    for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)\b", file.read()):
                        newest = max(newest, (int(major), int(minor)))
    return f"py3-none-manylinux_{newest[0]}_{newest[1]}_{machine}"


def write(stage, version, out):
    tag = platform_tag(stage)
    info = os.path.join(stage, f"gpucache-{version}.dist-info")
    os.makedirs(info)
    with open(os.path.join(TOP, "README.md")) as file:
        readme = file.read()
    entries = "".join(f"{name} = gpucache.__main__:{name.replace('-', '_')}\n" for name in SCRIPTS)
    for name, text in (("METADATA", METADATA.format(version=version) + readme), ("WHEEL", WHEEL.format(version=version, tag=tag)),
                       ("entry_points.txt", "[console_scripts]\n" + entries)):
        with open(os.path.join(info, name), "w") as file:
            file.write(text)
    shutil.copy(os.path.join(TOP, "LICENSE"), info)
    path = os.path.join(out, f"gpucache-{version}-{tag}.whl")
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
    return path


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tree, version, out = sys.argv[1:]
    stage = os.path.join(tree, "stage")
    shutil.rmtree(stage, ignore_errors=True)
    gather(tree, stage)
    print(write(stage, version, out))


if __name__ == "__main__":
    main()
