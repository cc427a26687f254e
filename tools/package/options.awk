# SPDX-License-Identifier: Apache-2.0
# awk -f options.awk src/config/options.def: prints the table of options in docs/user/OPTIONS.md and gpucache(5).
BEGIN {
	print "| option | type | default | what it does |"
	print "| --- | --- | --- | --- |"
}
/^OPTION\(/ {
	row = $0
	sub(/^OPTION\([ \t]*/, "", row)
	name = row; sub(/[ \t]*,.*/, "", name)
	sub(/^[^,]*,[ \t]*/, "", row)
	type = row; sub(/[ \t]*,.*/, "", type)
	# The strings of a row: the default, the choices if there are any, the help.
	n = 0
	while (match(row, /"[^"]*"/)) {
		text[++n] = substr(row, RSTART + 1, RLENGTH - 2)
		row = substr(row, RSTART + RLENGTH)
	}
	kind = tolower(type)
	if (type == "ENUM") {
		kind = text[2]
		gsub(/\|/, ", ", kind)
	}
	value = text[1] == "" ? "" : "`" text[1] "`"
	print "| `" name "` | " kind " | " value " | " text[n] " |"
}
