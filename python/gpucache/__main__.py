# SPDX-License-Identifier: Apache-2.0
"""python -m gpucache: the tools of this package.

    python -m gpucache run [OPTIONS] PROGRAM [ARGUMENT]...    gpucache-run; this Python runs a PROGRAM that ends in .py
    python -m gpucache report [ARGUMENT]...                   gpumem-report
    python -m gpucache replay [ARGUMENT]...                   gpumem-replay
    python -m gpucache path                                   the path for LD_PRELOAD
"""
import os
import sys

import gpucache

# Of gpucache-run: those with a value of their own.
_WITH_VALUE = {"-c", "--conf", "-o", "--output", "--sim-options", "--on", "--steps", "--sweep"}


def _with_python(arguments):
    """Puts this interpreter before a program that is a script of it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "--":
        at += 2 if arguments[at] in _WITH_VALUE or (arguments[at] == "--sim" and not _is_program(arguments, at + 1)) else 1
    at += at < len(arguments) and arguments[at] == "--"
    if at < len(arguments) and arguments[at].endswith(".py") and not os.access(arguments[at], os.X_OK):
        return [*arguments[:at], sys.executable, *arguments[at:]]
    return arguments


def _is_program(arguments, at):
    return at < len(arguments) and (arguments[at].startswith("-") or arguments[at].endswith(".py") or "/" in arguments[at])


def _exec(name, arguments, env):
    path = gpucache.tool(name)
    try:
        os.execvpe(path, [path, *arguments], env)
    except OSError as error:
        sys.exit(f"gpucache: {path}: {error.strerror}")


def gpucache_run(arguments=None):
    _exec("gpucache-run", _with_python(sys.argv[1:] if arguments is None else arguments), os.environ)


def gpumem_report(arguments=None):
    _exec("gpumem-report", sys.argv[1:] if arguments is None else arguments, gpucache.environment())


def gpumem_replay(arguments=None):
    _exec("gpumem-replay", sys.argv[1:] if arguments is None else arguments, gpucache.environment())


def main():
    command, arguments = (sys.argv[1:] or ["-h"])[0], sys.argv[2:]
    tools = {"run": gpucache_run, "report": gpumem_report, "replay": gpumem_replay}
    if command in tools:
        tools[command](arguments)
    elif command == "path" and gpucache.library_path():
        print(gpucache.library_path())
    elif command in ("-h", "--help"):
        print(__doc__.rstrip())
    elif command in ("-V", "--version"):
        gpumem_report(["-V"])
    else:
        sys.exit(f"gpucache: {command}: there is no such command\n{__doc__.rstrip()}")


if __name__ == "__main__":
    main()
