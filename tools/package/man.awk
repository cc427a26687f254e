# SPDX-License-Identifier: Apache-2.0
# awk -v section=1 -v version=VERSION -f man.awk HELP: prints a manual page.  HELP is the output of --help:
#
#   first line            NAME - what it is
#   Usage: ...            the synopsis, with its continuation lines
#   Word[ word...]: ...   a section, which begins with the rest of the line
#   "  -x, --long  text"  a paragraph with a tag, as are "  word  text"; deeper lines continue it
#   Examples              and all other indented lines: verbatim
#   "| a | b | ... |"     a row of a table: a is the tag
function escape(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}
function line(text) {
	text = escape(text)
	if (text ~ /^[.']/)
		text = "\\&" text
	print text
}
function fill(on) {
	if (on != filling)
		print on ? ".fi" : ".nf"
	filling = on
}
function heading(text) {
	fill(1)
	print ".SH " toupper(escape(text))
	section_name = tolower(text)
	tag_column = 0
}
function tagged(tag, text) {
	fill(1)
	print ".TP"
	line(tag)
	tag_column = 5
	if (text != "")
		line(text)
}
# Keep an empty line only between two lines of text.
owed != "" {
	if ($0 != "" && $0 !~ /^[A-Z][a-zA-Z, =-]*:( |$)/ && $0 !~ /^ +-/ && $0 !~ /^\|/)
		print owed
	owed = ""
}
NR == 1 {
	split($0, part, / - /)
	print ".TH " toupper(escape(part[1])) " " section " \"\" \"gpucache " version "\""
	filling = 1
	print ".SH NAME"
	print escape(part[1]) " \\- " escape(part[2])
	next
}
/^Usage: / {
	heading("Synopsis")
	fill(0)
	line(substr($0, 8))
	section_name = "usage"
	next
}
section_name == "usage" && /^ +[^ ]/ {
	sub(/^ +/, "")
	line($0)
	next
}
/^\| [a-z`]/ {
	n = split($0, cell, / *\| */)
	gsub(/`/, "", $0)
	if (cell[2] ~ /^(option|---)/)
		next
	gsub(/`/, "", cell[2])
	gsub(/`/, "", cell[4])
	tagged(cell[2], cell[5] " (" cell[3] (cell[4] == "" ? "" : ", default " cell[4]) ")")
	next
}
/^\|/ { next }
/^[A-Z][a-zA-Z, =-]*:( |$)/ {
	at = index($0, ":")
	heading(substr($0, 1, at - 1))
	rest = substr($0, at + 1)
	sub(/^ +/, "", rest)
	is_paragraph = rest != ""
	if (is_paragraph)
		line(rest)
	next
}
/^[^ ]/ {
	if (section_name == "usage" || section_name == "")
		heading("Description")
	fill(1)
	tag_column = 0
	line($0)
	next
}
/^$/ {
	if (section_name != "usage")
		owed = filling ? ".PP" : ".sp"
	tag_column = 0
	is_paragraph = 0
	next
}
!is_paragraph && section_name !~ /^(examples|afterwards|workloads)/ && /^ +[^ ]+( [^ ]+)*  +[^ ]/ && !(tag_column && /^            /) {
	text = $0
	sub(/^ +/, "", text)
	match(text, /  +/)
	tagged(substr(text, 1, RSTART - 1), substr(text, RSTART + RLENGTH))
	next
}
section_name ~ /^options/ && /^ +-/ {
	sub(/^ +/, "")
	tagged($0, "")
	next
}
(tag_column || is_paragraph) && /^ +/ {
	sub(/^ +/, "")
	# The line has its own columns.
	if (/  /)
		print ".br"
	line($0)
	next
}
{
	tag_column = 0
	fill(0)
	line($0)
}
END { fill(1) }
