#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# completion.sh bash|zsh|fish TOOL <HELP: prints the shell's completion of TOOL's commands and options.  HELP is the
# output of TOOL --help.
set -eu
shell=$1
tool=$2
help=$(cat)

# One line per spelling of an option ("-d" and "--device" have two) and per command: the word, a tab, its help.
options() {
	printf '%s\n' "$help" | awk '
	/^[A-Z][^:]*:/ { in_options = /^(Options|Filters)/ }
	# A continuation line may mention an option, too: "where --symbols opens them".
	in_options && /^ +(-|.*--[a-z])/ {
		text = $0
		sub(/^ +/, "", text)
		what = ""
		if (match(text, /  +[^ -]/)) {
			what = substr(text, RSTART)
			sub(/^ +/, "", what)
		}
		while (match(text, /(^|[ ;,])--?[a-zA-Z][a-zA-Z-]*/)) {
			name = substr(text, RSTART, RLENGTH)
			sub(/^[ ;,]+/, "", name)
			if (!(name in seen))
				print name "\t" what
			seen[name] = 1
			text = substr(text, RSTART + RLENGTH)
		}
	}' | tr -d "'\"\`\\\\\$[]"
}
commands() {
	printf '%s\n' "$help" | awk '
	/^[A-Z][^:]*:/ { inside = /^Commands/ }
	inside && /^  [a-z]+ / { name = $1; sub(/^ +[a-z]+ +/, ""); print name "\t" $0 }' | tr -d "'\"\`\\\\\$[]"
}
words() { "$1" | cut -f 1 | tr '\n' ' '; }

function_name=_$(printf '%s' "$tool" | tr - _)
case $shell in
bash)
	cat <<END
# Completion of $tool for bash.
$function_name() {
	local word=\${COMP_WORDS[COMP_CWORD]}
	case \$word in
	-*) COMPREPLY=(\$(compgen -W '$(words options)' -- "\$word")) ;;
	*)
		COMPREPLY=(\$(compgen -f -- "\$word"))
		[ "\$COMP_CWORD" -ne 1 ] || COMPREPLY+=(\$(compgen -W '$(words commands)' -- "\$word"))
		$([ "$tool" != gpucache-run ] || echo "COMPREPLY+=(\$(compgen -c -- \"\$word\"))")
		;;
	esac
}
complete -o filenames -F $function_name $tool
END
	;;
zsh)
	printf '#compdef %s\n# Completion of %s for zsh.\n' "$tool" "$tool"
	printf 'local -a commands options\ncommands=(\n'
	commands | awk -F '\t' '{ gsub(/:/, "\\:", $2); printf "\t\047%s:%s\047\n", $1, $2 }'
	printf ')\noptions=(\n'
	options | awk -F '\t' '{ gsub(/:/, "\\:", $2); printf "\t\047%s:%s\047\n", $1, $2 }'
	# Single quotes: zsh expands this, not we.
	# shellcheck disable=SC2016
	printf ')\nif [[ $PREFIX = -* ]]; then\n\t_describe option options -o\nelse\n'
	printf '\t(( CURRENT == 2 )) && (( $#commands )) && _describe command commands\n\t_files\n'
	[ "$tool" != gpucache-run ] || printf '\t_command_names\n'
	printf 'fi\n'
	;;
fish)
	printf '# Completion of %s for fish.\n' "$tool"
	commands | awk -F '\t' -v tool="$tool" '{ printf "complete -c %s -n __fish_use_subcommand -a %s -d \047%s\047\n", tool, $1, $2 }'
	options | awk -F '\t' -v tool="$tool" '
		{ kind = $1 ~ /^--/ ? "-l" : "-s"; sub(/^-+/, "", $1); printf "complete -c %s %s %s -d \047%s\047\n", tool, kind, $1, $2 }'
	;;
*)
	echo "usage: completion.sh bash|zsh|fish TOOL <HELP" >&2
	exit 2
	;;
esac
