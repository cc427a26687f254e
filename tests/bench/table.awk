# SPDX-License-Identifier: Apache-2.0
# awk -F, -v rows=rows.txt -f table.awk bench.csv: prints the figures of build/bench.csv with targets and meanings.
# Exit status 1 if a row has no line in rows.txt.
function is_missed(ratio, target) {
	if (target == "-")
		return 0
	if (sub(/^>=/, "", target))
		return ratio + 0 < target + 0
	return ratio + 0 > target + 0
}
BEGIN {
	while ((getline line < rows) > 0) {
		if (line ~ /^#/)
			continue
		split(line, part, " ")
		names[++n_names] = part[1]
		aim[part[1]] = part[2]
		meaning[part[1]] = line
		sub(/^[^ ]+ +[^ ]+ +/, "", meaning[part[1]])
	}
	form = "%-34s %10s %-5s %10s %8s %7s  %s\n"
	printf form, "name", "value", "unit", "baseline", "ratio", "target", "meaning"
}
NR == 1 { next }
!($1 in aim) {
	print $1 ": tests/bench/rows.txt has no row for it" >"/dev/stderr"
	bad = 1
}
{
	seen[$1] = 1
	missed = is_missed($5, aim[$1])
	n_missed += missed
	n_aims += aim[$1] != "-"
	printf form, $1, $2, $3, $4, $5 (missed ? "!" : " "), aim[$1], meaning[$1]
}
END {
	for (i = 1; i <= n_names; i++) {
		name = names[i]
		if (name in seen)
			continue
		printf form, name, "-", "", "", "-", aim[name], "not measured here"
	}
	printf "\n%d of %d targets met; ! is one that was missed: of a ratio, on this machine, now\n", n_aims - n_missed, n_aims
	exit bad
}