#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sum that a report's JSON has adds up, to the byte: sums.py FILE...

    balance             the lines and the difference to the total
    holders             with what is not listed, to the libraries
    tags, threads       each table of the live blocks to the others
    functions           with what is not listed, to the bytes live
    tree                the children of a node to at most its bytes; the roots to the bytes live
    changes             both sides to their totals, and a change is their difference
    groups              to the bytes not freed, as do the GPUs'
"""
import json
import sys

SHEET = ["requested", "rounding", "pending", "cached", "direct", "process_outside", "other_processes", "driver_reserve",
         "unattributed", "free"]


class Wrong(Exception):
    pass


def expect(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: {found}, not {wanted}")
    return 1


def total(rows, key="live_bytes"):
    return sum(row[key] for row in rows)


def check_balance(balance):
    lines = [balance[name + "_bytes"] for name in SHEET]
    kinds = total(balance["direct_kinds"], "bytes")
    return (expect("the balance", sum(filter(None, lines)) + balance["difference_bytes"], balance["total_bytes"])
            + (expect("straight from the driver", kinds, balance["direct_bytes"]) if kinds else 0))


def check_holders(place):
    listed = total(place["holders"]) + place["not_listed_bytes"]
    return expect("holders and libraries", listed, total(place["libraries"]))


def check_tree(place):
    nodes = place["tree"]
    expect("the roots", total([node for node in nodes if node["depth"] == 0]) + place["not_listed_bytes"], place["live_bytes"])
    path = []
    for node in nodes:
        del path[node["depth"]:]
        if path:
            path[-1]["below"] = path[-1].get("below", 0) + node["live_bytes"]
            if path[-1]["below"] > path[-1]["live_bytes"]:
                raise Wrong(f"below {path[-1]['name']} is more than in it")
        path.append(node)
    return 1 + len(nodes)


def check_changes(place):
    for change in place["changes"]:
        expect(change["function"], change["after_bytes"] - change["before_bytes"], change["change_bytes"])
    return sum(expect(f"the changes {side}", total(place["changes"], side + "_bytes"), place[side + "_bytes"])
               for side in ("before", "after"))


def check_place(place):
    """A GPU, or the whole of a view of one."""
    n = check_balance(place["balance"]) if place.get("balance") and place["balance"]["total_bytes"] is not None else 0
    n += check_holders(place) if "libraries" in place else 0
    n += check_tree(place) if "tree" in place else 0
    n += check_changes(place) if "changes" in place else 0
    if "functions" in place:
        n += expect("the functions", total(place["functions"], "own_bytes") + place["not_listed_bytes"], place["live_bytes"])
    tables = [total(place[key]) for key in ("tags", "tag_patterns", "threads", "streams") if place.get(key)]
    return n + sum(expect("tables of the same blocks", one, tables[0]) for one in tables)


def check(view):
    n = check_place(view) + sum(check_place(device) for device in view.get("devices", []))
    if "groups" in view:
        n += expect("the groups", total(view["groups"]), view["not_freed_bytes"])
        n += expect("the GPUs", total(view["devices"], "not_freed_bytes"), view["not_freed_bytes"])
    return n


def main():
    n = failed = 0
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                n += check(json.load(file))
        except Wrong as wrong:
            failed += 1
            print(f"{path}: {wrong}")
    print(f"{n} sums")
    return failed != 0 or n == 0


if __name__ == "__main__":
    sys.exit(main())
