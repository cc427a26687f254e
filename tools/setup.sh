#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh name|build|deb|wheel|release|tests|cluster|check...: makes sure that the dependencies are installed: of the build
# (name, build), of a package (deb, wheel), of its test in bare systems (release), of the tests' programs (tests), of a cluster
# on this host (cluster), of all tests and lints (check).
#
# Looks for the files themselves, so it is instant if nothing is missing.  Root installs missing Debian packages; other
# users, and whoever gives `name`, get the command to type, and status 2.
set -eu

for mode in "${@:-build}"; do
	case $mode in
	name | build | deb | wheel | release | tests | cluster | check) ;;
	*)
		echo "usage: setup.sh name|build|deb|wheel|release|tests|cluster|check..." >&2
		exit 2
		;;
	esac
done
modes=" ${*:-build} "
for_any() { # MODE...
	for mode in "$@"; do
		case $modes in *" $mode "*) return 0 ;; esac
	done
	return 1
}

missing=''
lacking() { missing="$missing $1"; }

need_command() { # COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 || lacking "$2"
}

need_header() { # HEADER PACKAGE
	for folder in /usr/include /usr/local/include /usr/include/*-linux-gnu; do
		[ ! -e "$folder/$1" ] || return 0
	done
	lacking "$2"
}

need_library() { # FILE PACKAGE
	for folder in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /lib/*-linux-gnu /usr/lib/*-linux-gnu; do
		[ ! -e "$folder/$1" ] || return 0
	done
	lacking "$2"
}

need_command gcc gcc
need_command make make
need_header stdlib.h libc6-dev
need_header elfutils/libdwfl.h libdw-dev
need_header json-c/json.h libjson-c-dev
need_header uthash.h uthash-dev
need_header zlib.h zlib1g-dev
need_header ncurses.h libncurses-dev
# Opened at run time, so the build succeeds without it.
need_library libunwind.so.8 libunwind8
if for_any deb check; then
	need_command dpkg-shlibdeps dpkg-dev
fi
if for_any deb wheel check; then
	need_command strip binutils
fi
if for_any release; then
	need_command debootstrap debootstrap
fi
if for_any wheel check; then
	# Linked into the wheel.
	need_library libbz2.a libbz2-dev
	need_library liblzma.a liblzma-dev
fi
if for_any wheel tests check; then
	need_command python3 python3
fi
if for_any tests check; then
	need_header cmocka.h libcmocka-dev
fi
if for_any cluster; then
	# The tests start daemons of their own; where systemd runs, apt may start others.
	need_command slurmctld slurmctld
	need_command slurmd slurmd
	need_command srun slurm-client
	need_command slurmdbd slurmdbd
	need_command munged munge
	need_command mariadbd mariadb-server
	need_command podman podman
	need_command crun crun
	need_command runc runc
	need_command debootstrap debootstrap
	need_command jq jq
	need_command musl-gcc musl-tools
	need_command prometheus prometheus
	need_command prometheus-alertmanager prometheus-alertmanager
	need_command prometheus-node-exporter prometheus-node-exporter
fi
if for_any check; then
	# Other allocators and another unwinder, which tests load into the same process.
	need_header libunwind.h libunwind-dev
	need_library libjemalloc.so.2 libjemalloc2
	need_library libtcmalloc_minimal.so.4 libtcmalloc-minimal4
	need_command clang-format clang-format
	need_command clang-tidy clang-tidy
	need_command shellcheck shellcheck
	need_command tmux tmux
	# Used by the test of an installation.
	need_command pkg-config pkg-config
fi

# Optional: without D3 the build succeeds, and `gpumem-report html` reports that it is missing.
wanted=''
[ "$modes" = ' build ' ] || [ -e /usr/share/nodejs/d3/dist/d3.min.js ] || wanted=node-d3

[ -n "$missing$wanted" ] || exit 0
may_install() { ! for_any name && [ "$(id -u)" -eq 0 ]; }
if [ -z "$missing" ] && ! { may_install && command -v apt-get >/dev/null 2>&1; }; then
	echo "setup: without D3 there is no \`gpumem-report html\`; Debian's package is $wanted" >&2
	exit 0
fi
# Package names have no blanks: splitting is intended.
# shellcheck disable=SC2086
set -- $missing $wanted
if ! command -v apt-get >/dev/null 2>&1; then
	echo "setup: missing, by their names in Debian: $*" >&2
	echo "setup: install them with this system's package manager, then type the command again" >&2
	exit 2
fi
if ! may_install; then
	sudo=$([ "$(id -u)" -eq 0 ] || echo 'sudo ')
	echo "setup: some packages are missing; type this, then the command again:" >&2
	echo "  ${sudo}apt-get install --no-install-recommends $*" >&2
	exit 2
fi

echo "setup: installing $*"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1 </dev/null; }
# Update the package lists only if the first attempt fails: a fresh image has none.
if ! install "$@" && ! { apt-get update -q >"$log" 2>&1 && install "$@"; }; then
	[ -n "$missing" ] || exit 0
	cat "$log" >&2
	echo "setup: apt-get could not install: $*" >&2
	exit 2
fi
