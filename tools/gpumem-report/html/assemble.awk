# SPDX-License-Identifier: Apache-2.0
# awk -f assemble.awk -v part=head|tail -v css=FILES -v d3=FILE -v code=FILES page.html
#
# Prints the part of page.html before its mark `data` (head), or after it (tail).  Every other mark is replaced by the
# contents of the files of that name.
function put(files, names, n, i, line) {
	n = split(files, names, " ")
	for (i = 1; i <= n; i++)
		while ((getline line < names[i]) > 0)
			print line
}
/^<!-- mark: data -->$/ { is_behind = 1; next }
(part == "head") == is_behind { next }
/^<!-- mark: css -->$/ { put(css); next }
/^<!-- mark: d3 -->$/ { put(d3); next }
/^<!-- mark: code -->$/ { put(code); next }
{ print }
