"""Writes python_lines_cases.inc: code objects of real CPythons, their line tables, and what co_lines() says."""
import subprocess, sys, json
PROBE = r'''
import sys, json, dis
SOURCE = """
def plain(a, b):
    x = a + b

    y = (x *
         b)
    for i in range(3):
        if i:
            y += i
        else:
            y -= i
    try:
        z = [q
             for q in (1, 2)
             if q]
    except ValueError:
        z = None
    finally:
        y = 0
    with open(__file__) as f:
        f.read(
            10,
        )
    while x:
        x -= 1
        if x == 2:
            continue
    return (lambda: x,
            y, z)


def far(a):
    a = 1
""" + "\n" * 300 + """
    b = 2
    return (
        a,
""" + "\n" * 200 + """
        b)


async def coroutine(x):
    async with x as y:
        await y
    return y
"""
out = []
def walk(code):
    for c in code.co_consts:
        if hasattr(c, "co_code"):
            walk(c)
    n = len(code.co_code)
    if sys.version_info >= (3, 10):
        table = code.co_linetable
        lines = [0] * (n // 2)
        for start, end, line in code.co_lines():
            for o in range(start, min(end, n), 2):
                lines[o // 2] = line or 0
    else:
        table = code.co_lnotab
        lines = [0] * (n // 2)
        starts = list(dis.findlinestarts(code))
        # findlinestarts leaves out repeats of a line, which changes nothing of what covers what.
        for k, (start, line) in enumerate(starts):
            end = starts[k + 1][0] if k + 1 < len(starts) else n
            for o in range(start, end, 2):
                lines[o // 2] = line
    out.append([code.co_name, code.co_firstlineno, list(table), lines])
walk(compile(SOURCE, "probe.py", "exec"))
print(json.dumps([sys.version_info[0] * 256 + sys.version_info[1], out]))
'''
def main():
    print("/* Made by make_python_lines_cases.py from the Pythons it was given; not edited by hand. */")
    for python in sys.argv[1:]:
        version, codes = json.loads(subprocess.check_output([python, "-c", PROBE]))
        for name, first, table, lines in codes:
            print('CASE(0x%04x, "%s", %d,' % (version, name, first))
            print('\tTABLE(%s),' % ", ".join(map(str, table)))
            print('\tLINES(%s))' % ", ".join(map(str, lines)))
main()
