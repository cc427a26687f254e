# SPDX-License-Identifier: Apache-2.0
"""manylinux.py FOLDER: names each binary in FOLDER that would not run wherever manylinux_2_28 says that it does.

The policy (PEP 600) allows symbols of glibc up to that version and no library that a system may lack; auditwheel judges by
the same.  Of the libraries it allows, these are the ones that we use.
"""
import os
import re
import subprocess
import sys

GLIBC = (2, 28)
TAG = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
# In libraries of their own until glibc 2.34, where libc.so.6 alone does not bring them.
HOMES = [(r"pthread_(create|join|once|sigmask|key_create|setspecific|rwlock_\w+)", "libpthread.so.0"),
         (r"dl(open|sym|vsym|close|addr)", "libdl.so.2"), (r"shm_(open|unlink)", "librt.so.1")]
LIBRARIES = re.compile(r"(libc|libdl|libpthread|librt)\.so\.\d+|ld-linux\S+")


def is_binary(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries(folder):
    for where, _, files in sorted(os.walk(folder)):
        yield from (path for path in (os.path.join(where, name) for name in sorted(files)) if is_binary(path))


def needs(path):
    """The libraries that a binary needs, and (version, function) for each function of glibc."""
    said = subprocess.run(["readelf", "-dW", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    calls = [((int(major), int(minor)), name) for name, major, minor in re.findall(r" UND (\S+)@GLIBC_(\d+)\.(\d+)", said)]
    return re.findall(r"\(NEEDED\).*\[(\S+)\]", said), calls


def faults(folder):
    """What is wrong, in words."""
    found = []
    for path in binaries(folder):
        libraries, calls = needs(path)
        name = os.path.relpath(path, folder)
        found += [f"{name} needs {library}" for library in libraries if not LIBRARIES.fullmatch(library)]
        found += [f"{name} calls {function} of glibc {version[0]}.{version[1]}: tools/package/portable.c has to call an older one"
                  for version, function in calls if version > GLIBC]
        found += [f"{name} calls {function} and is not linked with {home}, which has it before glibc 2.34"
                  for _, function in calls for functions, home in HOMES if re.fullmatch(functions, function) and home not in libraries]
    return found


def main():
    found = faults(sys.argv[1])
    print("\n".join(found) or f"{TAG} {sum(1 for _ in binaries(sys.argv[1]))} binaries")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
