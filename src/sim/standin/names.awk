# SPDX-License-Identifier: Apache-2.0
# Makes the table of a simulated library, a row KIND(name) per function (standin.h), from the words of names.txt.
#
#   NOT cusolverDn: {S,D}potrf{,_bufferSize}      NOT(cusolverDnSpotrf) NOT(cusolverDnSpotrf_bufferSize) and the same of D
#
#   CODES not_supported=9 failed=6                CODES(.not_supported=9, .failed=6)
#
# The words before the colon, a kind and a prefix, hold for the words after it and in the lines below, which are indented.

function rows(before, word, open, close_, n, i, parts) {
	open = index(word, "{")
	if (!open) {
		print kind "(" before word ")"
		return
	}
	close_ = index(word, "}")
	n = split(substr(word, open + 1, close_ - open - 1), parts, ",")
	for (i = 1; i <= n; i++)
		rows(before substr(word, 1, open - 1) parts[i], substr(word, close_ + 1))
}

/^#/ { next }
/^CODES/ {
	gsub(/ +/, ", .")
	print "CODES(" substr($0, length("CODES, ") + 1) ")"
	next
}
/^[A-Z]/ {
	kind = $1
	prefix = substr($2, 1, length($2) - 1)
	$1 = $2 = ""
}
{
	for (field = 1; field <= NF; field++)
		if ($field != "")
			rows(prefix, $field)
}
