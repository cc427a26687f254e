#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py: tests the results of `make install`, `make deb` and `make wheel` from an empty folder, and examples/.

Prints a line per case: "ok", "FAIL" or "skip" and why; the last line counts them.  GPUCACHE_TEST_TORCH names a Python
with PyTorch, for the examples that need it.
"""
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
PACKAGING = os.path.join(TOP, "tools", "package")
TOOLS = ("gpumem-report", "gpumem-replay", "gpucache-run")
with open(os.path.join(TOP, "include", "gpucache_version.h")) as _header:
    VERSION, = re.findall(r'^#define GPUCACHE_VERSION "(.*)"$', _header.read(), re.M)
sys.path.insert(0, PACKAGING)
import linked  # noqa: E402
import manylinux  # noqa: E402


class Skip(Exception):
    pass


def call(command, cwd, status=0, **extra):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCACHE", "GPUSIM", "LD_", "MAKE", "MFLAGS"))}
    env.update(extra)
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", timeout=300, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, f"{' '.join(command)}: status {done.returncode}: {(done.stdout + done.stderr)[-800:]}"
    return done.stdout + done.stderr


class World:
    """An installation below `prefix`, and an empty working directory."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "elsewhere")
        self.prefix = os.path.join(folder, "usr")
        os.makedirs(self.folder)
        call(["make", "QUIET=1", "install", f"PREFIX={self.prefix}"], TOP)

    def wheel(self):
        """The wheel of this build, and what is in it."""
        unpacked = os.path.join(self.folder, "wheel")
        if not os.path.exists(unpacked):
            try:
                call(["make", "QUIET=1", "wheel"], TOP)
            except AssertionError as error:
                if "no source of libunwind here" in str(error):
                    raise Skip("no wheel: the source of libunwind cannot be fetched") from error
                raise
            with zipfile.ZipFile(self.wheel_path()) as file:
                file.extractall(unpacked)
        return self.wheel_path(), unpacked

    @staticmethod
    def wheel_path():
        path, = glob.glob(os.path.join(BUILD, f"gpucache-{VERSION}-*.whl"))
        return path

    def venv(self):
        """A virtual environment in which the wheel is installed."""
        wheel, _ = self.wheel()
        venv = os.path.join(self.folder, "venv")
        if not os.path.exists(venv):
            try:
                call([sys.executable, "-m", "venv", venv], self.folder)
            except AssertionError as error:
                raise Skip(f"no venv here: {str(error)[:80]}") from error
            call([f"{venv}/bin/pip", "install", "-q", "--no-index", "--no-deps", wheel], self.folder)
        return venv

    def pkg_config(self, *arguments):
        if not shutil.which("pkg-config"):
            raise Skip("there is no pkg-config")
        return call(["pkg-config", *arguments, "gpucache"], self.folder,
                    PKG_CONFIG_PATH=os.path.join(self.prefix, "lib", "pkgconfig")).split()

    def simulated(self):
        """The compiler's arguments for the simulated CUDA headers and runtime library."""
        return [f"-I{TOP}/src/sim/include", f"-L{self.prefix}/lib/gpucache/simcuda", "-Wl,--allow-shlib-undefined",
                "-l:libcudart.so.13"]

    def run(self, command, **extra):
        """Runs the command on the simulated GPU of the installation."""
        return call(command, self.folder, LD_LIBRARY_PATH=f"{self.prefix}/lib:{self.prefix}/lib/gpucache/simcuda", GPUSIM="memory:4GiB,context:0",
                    GPUCACHE_OUTPUT=f"{self.folder}/%e-%p.gpucache", **extra)


def case_each_example_is_compiled_by_pkg_config_and_runs(world):
    said = {"stream.c": "100 allocations, 1 of the driver", "oom_handler.c": "the cache is gone", "tags.c": "forward holds 67108864 bytes",
            "snapshot.c": "held at most 167772160", "buffer.cc": "CUDA_ERROR_OUT_OF_MEMORY"}
    found = {os.path.basename(path) for path in glob.glob(os.path.join(TOP, "examples", "*.c*")) if os.path.isfile(path)}
    assert found == set(said), f"examples/ has {sorted(found)}"
    for name, text in said.items():
        compiler = ["gcc", "-std=c11"] if name.endswith(".c") else ["g++", "-std=c++17"]
        if not shutil.which(compiler[0]):
            raise Skip(f"there is no {compiler[0]}")
        call([*compiler, "-Wall", "-Wextra", "-Werror", f"{TOP}/examples/{name}", *world.pkg_config("--cflags", "--libs"),
              *world.simulated(), "-o", "example"], world.folder)
        out = world.run(["./example"])
        assert text in out, f"{name}: {out}"


def case_the_example_of_cmake_is_built_and_runs(world):
    if not shutil.which("cmake"):
        raise Skip("there is no cmake")
    call(["cmake", "-S", f"{TOP}/examples/cmake", "-B", "cmake", f"-DCMAKE_PREFIX_PATH={world.prefix}",
          f"-DCUDART_INCLUDE={TOP}/src/sim/include",
          f"-DCUDART_LIBRARY={world.prefix}/lib/gpucache/simcuda/libcudart.so.13", "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined"],
         world.folder)
    call(["cmake", "--build", "cmake"], world.folder)
    assert "1 of the driver" in world.run(["cmake/stream"])


def case_the_preload_variable_is_the_library(world):
    preload, = world.pkg_config("--variable=preload")
    out = call([f"{world.prefix}/bin/gpucache-run", "--sim", "1GiB", "env"], world.folder)
    # The simulated GPU preloads its device files, too.
    line = next(line for line in out.splitlines() if line.startswith("LD_PRELOAD="))
    assert line.partition("=")[2].split(":")[0] == preload, line
    assert os.path.realpath(preload).endswith(f".so.{VERSION}")


def case_the_library_and_its_functions_have_versions(world):
    library = f"{world.prefix}/lib/libgpucache.so"
    out = call(["readelf", "-dW", library], world.folder)
    assert "soname: [libgpucache.so.0]" in out, out
    out = call(["readelf", "--dyn-syms", "-W", library], world.folder)
    for name, version in (("gpucache_malloc", "0.1"), ("gpucache_reset_peaks", "0.2")):
        assert re.search(rf"{name}@@GPUCACHE_{re.escape(version)}$", out, re.M), f"{name} is not of {version}"
    assert re.search(r" cuMemAlloc_v2$", out, re.M) and re.search(r" dlsym$", out, re.M), "a hook has a version: it would be passed by"


def case_manual_pages_and_completions_say_what_help_says(world):
    for tool in TOOLS:
        help_text = call([f"{world.prefix}/bin/{tool}", "--help"], world.folder)
        with open(f"{world.prefix}/share/man/man1/{tool}.1") as file:
            page = file.read().replace("\\-", "-")
        options = set(re.findall(r"(?:^|[ ,;])(--[a-z][a-z-]+)", help_text.split("\nOptions:")[1].split("\n\n")[0]))
        assert len(options) >= 4 and not [option for option in options if option not in page], f"{tool}.1 lacks an option"
        for shell, path in (("bash", f"bash-completion/completions/{tool}"), ("zsh", f"zsh/vendor-completions/_{tool}"),
                            ("fish", f"fish/vendor_completions.d/{tool}.fish")):
            with open(f"{world.prefix}/share/{path}") as file:
                text = file.read()
            lacking = [option for option in options if not re.search(rf"(?:{option}|-l {option[2:]})\b", text)]
            assert not lacking, f"{tool} for {shell} lacks {lacking}"
            if shutil.which(shell):
                call([shell, "-n", file.name], world.folder)
    for page in ("man5/gpucache.5", "man7/gpucache.7"):
        assert os.path.exists(f"{world.prefix}/share/man/{page}"), page
    if shutil.which("mandoc"):
        out = call(["mandoc", "-T", "lint", "-W", "error", *glob.glob(f"{world.prefix}/share/man/man*/*")], world.folder)
        assert not out, out


def case_each_tool_knows_its_version(world):
    said = {call([f"{world.prefix}/bin/{tool}", "-V"], world.folder).split()[1] for tool in TOOLS}
    assert said == {VERSION}, said


def case_another_machine_is_built_for_beside_this_one(world):
    cross = "aarch64-linux-gnu-"
    out = call(["make", "-n", "V=1", "all", f"CROSS={cross}", f"CC={cross}gcc"], TOP)
    written = set(re.findall(r" -o (\S+)", out)) | set(re.findall(r"ln -sfn? \S+ (\S+)", out))
    assert written and all(path.startswith(f"build/{cross}release/") for path in written), sorted(written)[:5]
    if shutil.which(f"{cross}gcc"):
        call(["make", "QUIET=1", f"CROSS={cross}", f"CC={cross}gcc", f"build/{cross}release/libgpucache.so"], TOP)


def case_flags_of_the_command_line_win(world):
    del world
    target = "build/release/libgpucache.so"
    lines = [line for line in call(["make", "-n", "-B", "V=1", target, "CFLAGS=-O0 -g3"], TOP).splitlines()
             if re.search(r" -o build/release/\S+\.(o|so)\b", line)]
    assert len(lines) > 50 and any(f"-o {target} " in line for line in lines), lines[:3]
    for line in lines:
        levels = re.findall(r" (-O\S+)", line)
        assert levels[-1] == "-O0", line


def case_uninstall_leaves_no_file(world):
    other = os.path.join(os.path.dirname(world.prefix), "gone")
    for target in ("install", "uninstall"):
        call(["make", "QUIET=1", target, f"PREFIX={other}"], TOP)
    left = [name for _, _, files in os.walk(other) for name in files]
    assert not left, left


def case_the_python_module_does_what_it_promises(world):
    env = {"PYTHONPATH": os.path.join(TOP, "python"), "PATH": f"{world.prefix}/bin:{os.environ['PATH']}"}
    out = world.run([sys.executable, "-B", f"{TOP}/tests/programs/module.py"], LD_PRELOAD=f"{world.prefix}/lib/libgpucache.so", **env)
    assert out.splitlines()[:2] == ["IndexError", "done"], out
    world.run([sys.executable, "-B", f"{TOP}/tests/programs/module.py", "absent"], **env)


def case_the_wheel_runs_a_program_from_any_folder(world):
    venv = world.venv()
    shutil.copy(f"{TOP}/tests/programs/train.py", world.folder)
    python = f"{venv}/bin/python"
    out = call([python, "-m", "gpucache", "run", "--wait", "--sim", "4GiB", "-o", "wheel.gpucache", "train.py", "--oom"], world.folder, status=1)
    assert "gpucache: OUT OF MEMORY" in out and "remember_loss" in out and "\nHOLDERS " in out, out
    assert "OUT OF MEMORY" in call([python, "-m", "gpucache", "report", "wheel.gpucache"], world.folder)
    assert "OUT OF MEMORY" in call([f"{venv}/bin/gpumem-report", "wheel.gpucache"], world.folder)
    path = call([python, "-m", "gpucache", "path"], world.folder).strip()
    assert path.startswith(venv) and os.path.exists(path), path
    call([python, "-m", "gpucache", "flowers"], world.folder, status=1)
    assert os.path.exists(f"{venv}/share/man/man1/gpucache-run.1") and os.path.exists(f"{venv}/share/man/man5/gpucache.5")


def case_the_wheel_is_manylinux_2_28(world):
    wheel, unpacked = world.wheel()
    assert "-py3-none-manylinux_2_28_" in wheel, wheel
    assert not manylinux.faults(unpacked) and len(list(manylinux.binaries(unpacked))) > 20, manylinux.faults(unpacked)
    with open(f"{unpacked}/gpucache/bin/gpucache-run") as file:
        assert re.search(r"^GLIBC=2\.28\b", file.read(), re.M)


def case_the_gate_of_the_wheel_lets_in_what_the_wheel_promises(world):
    venv = world.venv()
    library = call([f"{venv}/bin/python", "-m", "gpucache", "path"], world.folder).strip()
    gate = os.path.join(os.path.dirname(library), "libgpucache-gate.so")
    program = os.path.join(world.folder, "tells")
    for minor, preloaded in ((manylinux.GLIBC[1] - 1, gate), (manylinux.GLIBC[1], library)):
        with open(program + ".c", "w") as file:
            file.write('#include <stdio.h>\n#include <stdlib.h>\n'
                       f'const char *gnu_get_libc_version(void) {{ return "2.{minor}"; }}\nint main(void) {{ puts(getenv("LD_PRELOAD")); }}\n')
        call(["gcc", "-rdynamic", program + ".c", "-o", program], world.folder)
        assert call([program], world.folder, LD_PRELOAD=gate) == preloaded + "\n", f"glibc 2.{minor}"
    spec = json.loads(call([f"{venv}/bin/gpucache-run", "--cdi", "-o", f"{world.folder}/%p.gpucache"], world.folder))
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in spec["devices"][0]["containerEdits"]["mounts"]}
    unwind = mounts["/opt/gpucache/gpucache/libunwind-gpucache.so.8"]
    assert os.path.samefile(unwind, f"{os.path.dirname(library)}/gpucache/libunwind-gpucache.so.8"), unwind


def case_auditwheel_says_so_too(world):
    wheel, _ = world.wheel()
    tool = shutil.which("auditwheel") or f"{world.venv()}/bin/auditwheel"
    if not os.path.exists(tool):
        try:
            call([f"{world.venv()}/bin/pip", "install", "-q", "--retries=0", "--timeout=20", "auditwheel"], world.folder,
                 PIP_DEFAULT_TIMEOUT="20")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise Skip("there is no auditwheel, and pip cannot get it") from error
    said = re.search(r'following platform tag: "manylinux_2_(\d+)_', " ".join(call([tool, "show", wheel], world.folder).split()))
    assert said and int(said[1]) <= 28, said


def case_what_an_older_system_lacks_is_named_and_not_packed(world):
    folder = os.path.join(world.folder, "newer")
    os.makedirs(folder)
    source = "#include <pthread.h>\n#include <zlib.h>\n#include <sys/mman.h>\n" \
             "int f(pthread_t *t, void *(*g)(void *)) { return pthread_create(t, 0, g, 0) + (zlibVersion() != 0); }\n"
    source += 'int old_shm(const char *);\n__asm__(".symver old_shm,shm_unlink@%s");\nint h(void) { return old_shm(""); }\n' % (
        "GLIBC_2.2.5" if os.uname().machine == "x86_64" else "GLIBC_2.17")
    with open(f"{folder}/newer.c", "w") as file:
        file.write(source)
    call(["gcc", "-shared", "-fPIC", "newer.c", "-o", "newer.so", "-lz"], folder)
    faults = manylinux.faults(folder)
    for fault in ("newer.so needs libz.so.1", "newer.so calls pthread_create of glibc 2.34: ",
                  "newer.so calls shm_unlink and is not linked with librt.so.1"):
        assert any(found.startswith(fault) for found in faults), faults
    out = call([sys.executable, "-B", f"{PACKAGING}/manylinux.py", folder], folder, status=1)
    assert out.splitlines() == faults, out


def case_a_program_linked_for_older_systems_runs_as_any(world):
    world.wheel()
    program = os.path.join(world.folder, "portable")
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"{TOP}/tests/package/portable.c"]
    older = ["-Wl,--no-as-needed", *(f"-l:{name}" for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1"))]
    for extra in ([], [f"{BUILD}/release/tools/package/portable-dlsym.o", *older]):
        call(["gcc", *flags, *extra, "-o", program], world.folder)
        out = call([program, "word"], world.folder)
        assert out == "constructed 1 times, saw word; threads files libraries shared closing destroyed\n", out
    folder = os.path.join(world.folder, "older")
    os.makedirs(folder)
    shutil.move(program, folder)
    assert not manylinux.faults(folder), manylinux.faults(folder)


def case_the_wheel_lists_what_is_linked_with_its_licence(world):
    _, unpacked = world.wheel()
    info = f"{unpacked}/gpucache-{VERSION}.dist-info"
    with open(f"{info}/sboms/gpucache.cdx.json") as file:
        listed = {one["name"]: one for one in json.load(file)["components"]}
    assert {"elfutils", "json-c", "zlib", "xz-utils", "bzip2", "ncurses", "libunwind", "uthash", "glibc", "gcc"} <= set(listed), sorted(listed)
    for name, one in listed.items():
        assert one["version"] and one["licenses"][0]["expression"], one
        with open(f"{info}/licenses/{name}") as file:
            assert len(file.read()) > 500, f"{name} has no text of its licence"
    with open(f"{info}/licenses/elfutils") as file:
        assert "GNU LESSER GENERAL PUBLIC LICENSE" in file.read()
    # What is linked and not in the table is named, and there is no wheel.
    folder = os.path.join(world.folder, "unlisted")
    os.makedirs(folder)
    for path, fault in (("/usr/lib/nowhere.a", "no package of Debian has it"),
                        (call(["gcc", "-print-file-name=libunwind.a"], folder).strip(), "whose licence linked.py does not name")):
        with open(f"{folder}/unlisted.linked", "w") as file:
            file.write(f"out: \\\n  /usr/lib/nothing.so {path}\n")
        try:
            linked.components(folder)
            raise AssertionError(f"{path} is in no table, and was taken")
        except linked.Unknown as unknown:
            assert fault in str(unknown), unknown


def case_without_the_source_of_libunwind_a_line_says_what_to_do(world):
    world.wheel()
    folder = os.path.join(world.folder, "no-apt")
    os.makedirs(folder)
    os.symlink("/bin/false", f"{folder}/apt-get")
    build = [f"{PACKAGING}/libunwind.sh", "out.so", f"{BUILD}/release/tools/package/portable-dlsym.o"]
    out = call(build, folder, status=1, PATH=f"{folder}:{os.environ['PATH']}")
    assert "LIBUNWIND_SOURCE=FILE names a release's tar file" in out, out
    with open(f"{folder}/damaged.tar.gz", "w") as file:
        file.write("no archive\n")
    call(build, folder, status=2, LIBUNWIND_SOURCE=f"{folder}/damaged.tar.gz")
    assert sorted(os.listdir(folder)) == ["apt-get", "damaged.tar.gz"], os.listdir(folder)


def case_where_there_is_no_libunwind_the_one_of_the_wheel_walks(world):
    venv = world.venv()
    hidden = os.path.join(world.folder, "hidden")
    os.makedirs(hidden)
    with open(f"{hidden}/libunwind.so.8", "w") as file:
        file.write("not a library\n")
    code = "import ctypes; cuda = ctypes.CDLL('libcudart.so.13'); cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20); " \
           "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'unwind' in line})"
    run = [f"{venv}/bin/gpucache-run", "--sim", "1GiB", f"{venv}/bin/python", "-c", code]
    out = call(run, world.folder, LD_LIBRARY_PATH=hidden)
    assert re.fullmatch(r"\S+/site-packages/gpucache/lib/gpucache/libunwind-gpucache\.so\.8\n", out), out


def case_the_package_of_debian_has_no_errors_and_works_unpacked(world):
    if not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps"):
        raise Skip("there is no dpkg-dev")
    call(["make", "QUIET=1", "deb"], TOP)
    package, = glob.glob(os.path.join(BUILD, f"gpucache_{VERSION}_*.deb"))
    if shutil.which("lintian"):
        out = call(["lintian", "--fail-on", "error", package], world.folder)
        assert not re.search(r"^[EW]:", out, re.M), out
    call(["dpkg-deb", "-x", package, "unpacked"], world.folder)
    with gzip.open(f"{world.folder}/unpacked/usr/share/doc/gpucache/changelog.gz", "rt") as file:
        changes = file.read()
    assert changes.startswith(f"gpucache ({VERSION}) unstable;") and "  * " in changes, changes[:200]
    if shutil.which("dpkg-parsechangelog"):
        changelog = os.path.join(world.folder, "changelog")
        with open(changelog, "w") as file:
            file.write(changes)
        assert call(["dpkg-parsechangelog", "-l", changelog, "-S", "Version"], world.folder).strip() == VERSION
    out = call(["unpacked/usr/bin/gpucache-run", "--wait", "--sim", "1GiB", "-o", "deb.gpucache", f"{BUILD}/programs/train", "--oom"], world.folder,
               status=1)
    assert "gpucache: OUT OF MEMORY" in out and "\nHOLDERS " in out, out
    assert "remember_loss" in call(["unpacked/usr/bin/gpumem-report", "deb.gpucache"], world.folder)


def case_the_manifest_of_kubernetes_records_where_it_says(world):
    """The setup of docs/user/CONTAINERS.md: a folder as hostPath creates it, and a program that is not root if possible."""
    try:
        import yaml
    except ImportError as error:
        raise Skip("there is no yaml") from error
    with open(os.path.join(TOP, "docs", "user", "CONTAINERS.md")) as file:
        pod = yaml.safe_load(re.search(r"<!-- manifest -->\n```yaml\n(.*?)```", file.read(), re.S)[1])["spec"]
    init, = pod["initContainers"]
    main_one, = pod["containers"]
    assert init["image"].endswith(":" + VERSION), init["image"]
    node = tempfile.mkdtemp(prefix="gpucache-pod-")
    try:
        os.chmod(node, 0o755)
        mounts = {mount["mountPath"] for part in (init, main_one) for mount in part["volumeMounts"]}
        assert {mount["name"] for mount in init["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        for mount in mounts:
            os.mkdir(node + mount, 0o755)

        def here(text):
            return re.sub(r"/usr/lib/\*", f"{world.prefix}/lib", re.sub("(" + "|".join(sorted(mounts)) + r")\b(?!\.so)", node + r"\1", text))

        call([here(word) for word in init["command"]], world.folder)
        # This checkout may be closed to others.
        shutil.copy(f"{BUILD}/programs/train", node)
        shutil.copytree(f"{TOP}/build/simcuda", f"{node}/simcuda", symlinks=True)
        env = {entry["name"]: here(entry["value"]) for entry in main_one["env"]}
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 and shutil.which("setpriv") else []
        out = call([*other, "env", *(f"{name}={value}" for name, value in env.items()), f"{node}/train", "--oom"], node, status=1,
                   LD_LIBRARY_PATH=f"{node}/simcuda", GPUSIM="memory:1GiB")
        assert "cannot be used" not in out, out
        found, = os.listdir(f"{node}/recordings")
        assert re.fullmatch(rf"{re.escape(os.uname().nodename)}-p?\d+-\d+\.gpucache", found), found
        assert "OUT OF MEMORY" in call([f"{world.prefix}/bin/gpumem-report", f"{node}/recordings"], world.folder)
    finally:
        shutil.rmtree(node, ignore_errors=True)


def case_the_examples_with_pytorch_run(world):
    python = os.environ.get("GPUCACHE_TEST_TORCH")
    if not python:
        raise Skip("GPUCACHE_TEST_TORCH names no Python with PyTorch")
    run = [f"{world.prefix}/bin/gpucache-run", "--sim", "8GiB", python]
    env = {"PYTHONPATH": f"{TOP}/python", "PATH": f"{world.prefix}/bin:{os.environ['PATH']}"}
    assert "ten steps by gpucache" in call([*run, f"{TOP}/examples/pluggable.py"], world.folder, **env)
    assert "forward {'live_bytes': 134217728" in call([*run, f"{TOP}/examples/memory.py"], world.folder, **env)


def case_the_self_test_agrees_with_pytorch(world):
    python = os.environ.get("GPUCACHE_TEST_TORCH")
    if not python:
        raise Skip("GPUCACHE_TEST_TORCH names no Python with PyTorch")
    out = call([f"{world.prefix}/bin/gpucache-run", "--self-test", "--sim", "8GiB"], world.folder,
               PATH=f"{os.path.dirname(python)}:{os.environ['PATH']}")
    assert re.search(r"^ok +tensors +\d+ bytes, as PyTorch ", out, re.M) and "5 passed, 0 failed, 0 skipped" in out, out


def main():
    words = sys.argv[1:]
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    folder = tempfile.mkdtemp(prefix="gpucache-package-")
    try:
        world = World(folder)
        for name, function in list(globals().items()):
            sentence = name[5:].replace("_", " ")
            if not name.startswith("case_") or (words and not any(word in sentence for word in words)):
                continue
            verdict, why = "ok", ""
            try:
                function(world)
            except Skip as skip:
                verdict, why = "skip", f": {skip}"
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as fault:
                verdict, why = "FAIL", f": {fault}"
            count[verdict] += 1
            print(f"{verdict} {sentence}{why}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    sys.exit(1 if count["FAIL"] or not count["ok"] else 0)


if __name__ == "__main__":
    main()
