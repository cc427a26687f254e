#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_layers.sh LAYERS FOLDER...: every #include "..." obeys LAYERS.
#
# A file of src/x/ or src/x/y/ belongs to layer x; a file elsewhere to the layer named as its folder (preload,
# tools/y).  Within src an include is written "folder/file.h".  Any file may include the public
# headers of include/, and headers of its own folder.
set -eu
layers=$1
shift
find "$@" -name '*.[ch]' -o -name '*.def' | sort | xargs grep -Hn '^[ 	]*#[ 	]*include[ 	]*"' /dev/null |
	awk -v layers="$layers" '
function wrong(text) {
	print text
	bad = 1
}
# A folder that LAYERS does not name is a room of the one above it.
function layer_of(folder) {
	while (!(folder in known) && folder ~ /\//)
		sub(/\/[^\/]*$/, "", folder)
	return folder
}
BEGIN {
	while ((getline line < layers) > 0) {
		sub(/#.*/, "", line)
		if (split(line, half, ":") < 2)
			continue
		gsub(/[ \t]/, "", half[1])
		n = split(half[2], names, " ")
		for (i = 1; i <= n; i++) {
			if (!(names[i] in known))
				wrong(layers ": " half[1] " names " names[i] ", which no line above it describes")
			may[half[1], names[i]] = 1
		}
		known[half[1]] = 1
	}
}
{
	# path:line:#include "what"
	split($0, part, ":")
	where = part[1] ":" part[2]
	path = part[1]
	match($0, /"[^"]*"/)
	what = substr($0, RSTART + 1, RLENGTH - 2)

	own = path
	sub(/\/[^\/]*$/, "", own)
	layer = own
	in_src = sub(/^src\//, "", layer)
	if (!in_src && layer !~ /^tools\//)
		sub(/\/.*/, "", layer)
	layer = layer_of(layer)
	if (!(layer in known)) {
		wrong(where ": " layers " has no line for " layer)
		next
	}
	if (what ~ /^gpucache[a-z_]*\.h$/)
		next
	if (what !~ /\//) {
		if (in_src)
			wrong(where ": write \"" layer "/" what "\"")
		next
	}
	target = what
	sub(/^src\//, "", target)
	sub(/\/[^\/]*$/, "", target)
	target = layer_of(target)
	if (target != layer && target != own && !((layer, target) in may))
		wrong(where ": " layer " may not include " what)
}
END { exit bad }'
