#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bare.sh SUITE WHEEL [DEB]: installs the wheel, and the package, in a bare Debian SUITE and runs them there; needs root.
#
# debootstrap makes the system in build/bare/SUITE where it is not there: Python, and no compiler.  It stays as it is: what
# is installed lies in a layer above it, which is removed at the end.  Prints a line a case; the last line is
# "N passed, N failed".  BARE_TORCH names a release of PyTorch to install and run, too.
set -u
cd "$(dirname "$0")/../.." || exit 2
suite=$1
wheel=$(readlink -f "$2")
deb=${3:+$(readlink -f "$3")}
base=$PWD/build/bare/$suite
layer=$base.layer
root=$layer/root

if [ "${BARE_INSIDE:-}" != yes ]; then
	[ "$(id -u)" -eq 0 ] || { echo "bare.sh: needs root, for chroot" >&2; exit 2; }
	if [ ! -e "$base/complete" ]; then
		rm -rf "$base" && mkdir -p "$base"
		debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$base" >"$base.log" 2>&1 || {
			tail -3 "$base.log" >&2
			echo "bare.sh: debootstrap cannot make Debian $suite" >&2
			exit 2
		}
		touch "$base/complete"
	fi
	# What is mounted below is seen here only.
	rm -rf "$layer"
	status=0
	BARE_INSIDE=yes unshare --mount tests/package/bare.sh "$suite" "$wheel" ${deb:+"$deb"} || status=$?
	rm -rf "$layer"
	exit "$status"
fi

mkdir -p "$layer/upper" "$layer/work" "$root" && mount -t overlay overlay -o "lowerdir=$base,upperdir=$layer/upper,workdir=$layer/work" "$root" &&
	mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/dev/shm" || exit 2
cp /etc/resolv.conf "$root/etc/"
cp "$wheel" ${deb:+"$deb"} tests/programs/train.py "$root/tmp/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
passed=0
failed=0

inside() { # COMMAND
	env -i PATH=/opt/v/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp chroot "$root" sh -c "cd /tmp && $1" 2>&1
}

check() { # SENTENCE STATUS PATTERN COMMAND: it ends with STATUS and prints PATTERN
	said=$(inside "$4")
	status=$?
	if [ "$status" -eq "$2" ] && printf '%s\n' "$said" | grep -Eq -e "$3"; then
		echo "ok $suite: $1"
		passed=$((passed + 1))
	else
		echo "FAIL $suite: $1: status $status: $(printf '%s\n' "$said" | tail -12)"
		failed=$((failed + 1))
	fi
}

echo "$suite: $(inside 'getconf GNU_LIBC_VERSION'), $(inside 'python3 --version')"
# shellcheck disable=SC2016
check 'there is no compiler' 0 '^none$' 'for name in cc gcc clang; do ! command -v $name || exit 1; done; echo none'
check 'pip installs the wheel' 0 'glibc' 'python3 -m venv /opt/v && pip install -q --no-index /tmp/gpucache-*.whl && getconf GNU_LIBC_VERSION'
check 'a program runs out of memory, and the report says why' 1 '^HOLD .*remember_loss' \
	'gpucache-run --wait --sim 8GiB python train.py --oom'
check 'the recording is read' 0 '^WHY +growth' gpumem-report
check 'it is replayed' 0 'operations on 1 stream' gpumem-replay
check 'it becomes a page' 0 '<svg|d3|</html>' 'gpumem-report html -o page.html && tail -c 100 page.html'
check 'live processes are listed' 0 'gpumem live' 'gpumem-report live --once'
# For the shell inside.
# shellcheck disable=SC2016
check 'a program that uses no GPU runs by hand' 0 '^12$' 'LD_PRELOAD=$(python -m gpucache path) python -c "print(12)"'
# shellcheck disable=SC2016
check 'a program that the gate lets in runs out of memory, and the report says why' 1 '^HOLD.*remember_loss' \
	'here=$(dirname "$(python -m gpucache path)") && LD_LIBRARY_PATH=$here/gpucache/simcuda GPUSIM=memory:8GiB \
	LD_PRELOAD=$here/libgpucache-gate.so python train.py --oom'
check 'the self-test passes' 0 '4 passed, 0 failed, 1 skipped' 'gpucache-run --self-test --sim 8GiB'
gcc -D_GNU_SOURCE -o "$root/tmp/portable" tests/package/portable.c build/release/tools/package/portable-dlsym.o \
	-Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1
check 'each older function works' 0 '^constructed 1 times, saw word; threads files libraries shared closing destroyed$' './portable word'
if [ -n "${BARE_TORCH:-}" ]; then
	check 'PyTorch runs out of memory, and the report says why' 1 'OUT OF MEMORY' "pip install -q --no-cache-dir torch==$BARE_TORCH numpy &&
		gpucache-run --sim 8GiB python -c 'import torch
kept = [torch.ones(1 << 26, device=\"cuda\") for _ in range(99)]'"
fi
if [ -n "$deb" ]; then
	check 'apt installs the package' 0 'gpucache-run [0-9]' "apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends \
		./$(basename "$deb") >/dev/null && /usr/bin/gpucache-run -V"
	check 'the package does the same' 1 '^HOLD .*remember_loss' '/usr/bin/gpucache-run --wait --sim 8GiB python3 train.py --oom'
	check 'apt removes it' 0 '^gone$' 'apt-get purge -y -q gpucache >/dev/null && ! ls /usr/lib/*/libgpucache* /usr/lib/*/gpucache && echo gone'
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
