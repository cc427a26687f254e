# SPDX-License-Identifier: Apache-2.0
# awk -f assemble.awk -v part=head|tail -v css=FILES -v d3=FILE -v code=FILES page.html
#
# Prints page.html in front of its mark `data`, or behind it, with each other mark replaced by what the files of that name hold.
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
