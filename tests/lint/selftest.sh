#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# selftest.sh: every lint detects the fault that it is for.
set -eu
here=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failed=0

# Runs a lint, which must fail and print TEXT.
must_find() { # TEXT COMMAND...
	text=$1
	shift
	if said=$("$@" 2>&1); then
		echo "selftest: $1 found nothing where it should say \"$text\""
		failed=1
	elif ! printf '%s\n' "$said" | grep -qF "$text"; then
		echo "selftest: $1 did not say \"$text\" but: $said"
		failed=1
	fi
}

must_be_silent() { # COMMAND...
	if ! said=$("$@" 2>&1) || [ -n "$said" ]; then
		echo "selftest: $1 complained without a reason: $said"
		failed=1
	fi
}

mkdir -p src/base src/model src/alloc src/config preload tools/one tests/lint
printf 'base :\nalloc : base\nconfig : base\npreload : base\ntools/one : base\n' >LAYERS
printf '#include "base/a.h"\n#include "gpucache_format.h"\n' >src/alloc/x.c
printf 'int a(void);\n' >src/base/a.h
printf '#include "b.h"\n#include "base/a.h"\n' >tools/one/main.c
must_be_silent "$here/check_layers.sh" LAYERS src preload tools
must_be_silent "$here/check_sizes.sh" 600 src tools
must_be_silent "$here/check_headers.sh" src/base/a.h
must_be_silent "$here/check_words.sh" "$dir"

printf '#include "alloc/x.h"\n' >src/base/up.c
must_find 'src/base/up.c:1: base may not include alloc/x.h' "$here/check_layers.sh" LAYERS src
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "a.h"\n' >src/base/bare.c
must_find 'begins without a comment' "$here/check_heads.sh" src
printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* Text. */\n' >src/base/bare.c
must_find 'what is the idea' "$here/check_heads.sh" src
rm src/base/bare.c
printf '#include "a.h"\n' >src/base/up.c
must_find 'write "base/a.h"' "$here/check_layers.sh" LAYERS src
rm src/base/up.c
printf '#include "alloc/x.h"\n' >tools/one/main.c
must_find 'tools/one may not include alloc/x.h' "$here/check_layers.sh" LAYERS tools
printf 'base : alloc\nalloc : base\n' >CYCLE
must_find 'which no line above it describes' "$here/check_layers.sh" CYCLE src
mkdir src/stray && printf '#include "base/a.h"\n' >src/stray/s.c
must_find 'has no line for stray' "$here/check_layers.sh" LAYERS src
rm -r src/stray

{
	printf 'static int long_one(void)\n{\n'
	yes '	work();' | head -71
	printf '}\n'
} >src/base/long.c
must_find 'src/base/long.c:2: long_one() has 71 lines; at most 70' "$here/check_sizes.sh" 600 src
must_find 'src/base/long.c: 74 lines; at most 73' "$here/check_sizes.sh" 73 src
rm src/base/long.c

printf 'int b(size_t n);\n' >src/base/b.h
must_find 'src/base/b.h: does not compile alone' "$here/check_headers.sh" src/base/b.h
rm src/base/b.h

printf '/* TO%s: later */\n' DO >src/base/word.c
must_find 'unfinished' "$here/check_words.sh" "$dir"
printf '/* see /ro%s/x */\n' ot >src/base/word.c
must_find 'a path of one machine' "$here/check_words.sh" "$dir"
rm src/base/word.c

mkdir -p src/why
printf 'FACT(MOMENT, BYTES, asked, "a")\nFACT(NAMES, TRUTH, is_lost, "b")\n' >src/why/facts.def
printf '"{asked}"\n' >src/why/causes.def
printf 'facts->asked =\n\tbytes; facts->is_lost == 1;\n' >src/why/judge.c
touch src/why/derive.c
must_find 'nobody sets is_lost' "$here/check_facts.sh" "$dir"
printf 'facts->asked = facts->is_lost = 1;\n' >src/why/fill.c
: >src/why/judge.c
must_find 'nobody judges by is_lost' "$here/check_facts.sh" "$dir"
printf 'facts->is_lost\n' >src/why/judge.c
must_be_silent "$here/check_facts.sh" "$dir"
printf 'FROM(BYTES, total, oom->total, "c")\n' >>src/why/facts.def
must_find 'nobody judges by total' "$here/check_facts.sh" "$dir"
rm -r src/why

printf 'HOOK(cuMemAlloc_v2, x)\nHOOK(cuMemFree_v2, x)\n' >symbols.def
printf 'GPUCACHE_API int gpucache_trim(void);\n' >gpucache.h
printf 'int cuMemAlloc_v2, dlclose, dlsym, __assert_fail, _exit, _Exit, abort, exit, quick_exit, InitializeInjectionNvtx2, gpucache_trim, leaked;\n' >lib.c
"${CC:-gcc}" -shared -o lib.so lib.c
must_find 'cuMemFree_v2 is declared and not exported' "$here/check_exports.sh" lib.so symbols.def gpucache.h
must_find 'leaked is exported and declared nowhere' "$here/check_exports.sh" lib.so symbols.def gpucache.h
printf 'int cuMemAlloc_v2, cuMemFree_v2, dlclose, dlsym, __assert_fail, _exit, _Exit, abort, exit, quick_exit, InitializeInjectionNvtx2, gpucache_trim;\n' >lib.c
"${CC:-gcc}" -shared -o lib.so lib.c
must_find 'gpucache_trim has no version' "$here/check_exports.sh" lib.so symbols.def gpucache.h
printf 'V_1 { global: gpucache_*; };\n' >lib.map
"${CC:-gcc}" -shared -Wl,--version-script=lib.map -o lib.so lib.c
must_be_silent "$here/check_exports.sh" lib.so symbols.def gpucache.h

mkdir -p docs/user src/base
printf 'OPTION(cache, BOOL, "on", 0, 0, NULL, "answer from the cache")\n' >src/config/options.def
mkdir -p src/why && printf 'CAUSE(LIMIT, NUMBERS, "limit", "a limit refuses",\n\t"raise it")\n' >src/why/causes.def
printf 'all:\n' >Makefile
paste_table() { # NAME FILE
	printf '<!-- %s -->\n' "$1"
	"$here/check_docs.sh" --table "$1" "$dir"
	printf '<!-- /%s -->\n' "$1"
}
paste_table options >docs/user/OPTIONS.md
paste_table causes >docs/user/OUT-OF-MEMORY.md
printf 'took 1.03 times\n' >docs/user/PERFORMANCE.md
mkdir -p src/alloc src/runtime
printf 'static int await(int x)\n{\n\treturn ops->context_sync(x);\n}\n' >src/alloc/odd_wait.c
# shellcheck disable=SC2016
printf '| `alloc/odd_wait.c` | `await` |\n' >docs/ARCHITECTURE.md
printf 'takes 1.03 times as long [there](docs/user/OPTIONS.md)\n' >README.md
must_be_silent "$here/check_docs.sh" "$dir"
# shellcheck disable=SC2016
printf '```\n$ make flowers\n```\n' >docs/odd.md
must_find 'docs/odd.md: "make flowers": there is no such command or target' "$here/check_docs.sh" "$dir"
# shellcheck disable=SC2016
printf 'by `pip install -U gpucache`\n' >docs/odd.md
must_find 'pip install gpucache: the name is not ours' "$here/check_docs.sh" "$dir"
rm docs/odd.md
printf '1.04 times\n' >README.md
must_find '1.04 times is in no table' "$here/check_docs.sh" "$dir"
# shellcheck disable=SC2016
printf '`alloc/gone.c` waits in `await`\n' >docs/ARCHITECTURE.md
must_find 'names alloc/gone.c, which is not there' "$here/check_docs.sh" "$dir"
must_find 'lacks await of src/alloc/odd_wait.c' "$here/check_docs.sh" "$dir"
rm -r src/alloc/odd_wait.c docs/ARCHITECTURE.md
yes '' | head -201 >README.md
must_find 'more than 200 lines' "$here/check_docs.sh" "$dir"
sed 's/ | 1 of 1 |$/ | 2 of 2 |/' "$here/../../docs/user/CLIENTS.md" >docs/user/CLIENTS.md
must_find 'the list of sets are not what the sections' "$here/check_docs.sh" "$dir"
sed 's/ - 1 of 1$/ - 2 of 2/; s/ | 1 of 1 |$/ | 2 of 2 |/' "$here/../../docs/user/CLIENTS.md" >docs/user/CLIENTS.md
must_find 'says 2 of 2, and its rows 1 of 1' "$here/check_docs.sh" "$dir"
rm docs/user/CLIENTS.md
printf 'nothing\n' >docs/user/OPTIONS.md
must_find 'the table of options is not' "$here/check_docs.sh" "$dir"
paste_table options >docs/user/OPTIONS.md
printf 'nothing\n' >docs/user/OUT-OF-MEMORY.md
must_find 'the table of causes is not' "$here/check_docs.sh" "$dir"

rm -r docs README.md && mkdir -p docs/user docs/inside
printf '# Questions\n[a](user/A.md) [b](inside/B.md)\n' >docs/README.md
# shellcheck disable=SC2016
printf '# A `word` of mine\n[itself](#a-word-of-mine), took 1.13 to 1.18 times as long, Ubuntu 22.04, and 5.25 steps\n' >docs/user/A.md
# shellcheck disable=SC2016
printf '# B\n[a](../user/A.md#a-word-of-mine) Ubuntu 22.04, 1.18 times the size\n\n1.13 times\n```\n[no](link.md) 1.13, 1.18 times\n```\n' >docs/inside/B.md
printf '/* docs/user/A.md has more. */\n' >src/base/odd.c
must_be_silent "$here/check_pages.py" "$dir"
printf '/* docs/user/GONE.md has more. */\n' >src/base/odd.c
must_find 'src/base/odd.c:1: names docs/user/GONE.md, which is not there' "$here/check_pages.py" "$dir"
rm src/base/odd.c
printf '# C\n\n[gone](gone.md) [a](../user/A.md#another) took 1.18 times as long, or 1.13 times\n' >docs/inside/C.md
must_find 'docs/inside/C.md:3: links to gone.md, which is not there' "$here/check_pages.py" "$dir"
must_find 'docs/user/A.md has no such heading' "$here/check_pages.py" "$dir"
must_find 'has no link to docs/inside/C.md' "$here/check_pages.py" "$dir"
must_find 'docs/user/A.md:1: 1.13 times, 1.18 times: docs/inside/C.md:3 says the same' "$here/check_pages.py" "$dir"
rm docs/inside/C.md
printf '# A\nIt took less; a day later it was worse.\n' >docs/user/A.md
must_find 'a page for users says what is' "$here/check_pages.py" "$dir"

exit $failed
