# SPDX-License-Identifier: Apache-2.0
# awk -v version=VERSION -v maintainer='NAME <ADDRESS>' -f changelog.awk CHANGELOG.md: Debian's changelog of that
# version.  In its section a line of plain words begins a group, "- " an item.  Status 1 if the file has no dated
# section for the version.

function flush(    words, n, i, line, lead) {
	if (item == "")
		return
	n = split(item, words, " ")
	lead = "  * "
	line = lead words[1]
	for (i = 2; i <= n; i++) {
		if (length(line " " words[i]) > 76) {
			print line
			line = "    " words[i]
		} else
			line = line " " words[i]
	}
	print line
	item = ""
}

/^## / {
	flush()
	inside = $2 == version && $3 ~ /^\([0-9]+-[0-9]+-[0-9]+\)$/
	if (inside) {
		found = 1
		date = substr($3, 2, 10)
		printf "gpucache (%s) unstable; urgency=medium\n", version
	}
	next
}
!inside { next }
/^- / { flush(); item = substr($0, 3); next }
/^ / { item = item " " $0; next }
/^$/ { flush(); next }
{ flush(); printf "\n  [ %s ]\n", $0 }

END {
	flush()
	if (!found)
		exit 1
	command = "LC_ALL=C date -uR -d '" date " 12:00 UTC'"
	command | getline stamp
	printf "\n -- %s  %s\n", maintainer, stamp
}
