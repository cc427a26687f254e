# SPDX-License-Identifier: Apache-2.0
"""Malicious recordings, made from include/gpucache_format.h without the library.

Each function returns a recording of about SIZE bytes that is as costly to read as the format's limits allow, or that
breaks these limits.
"""
import struct

PAGE = 4096
MAGIC = b"GPUCACHE-RECORD"
ENDIAN = 0x01020304
STATE = 1 | 2  # complete, ended
SIZE = 10_000_000
(DEVICES, COUNTERS, SITES, STACKS, CODES, MODULES, TEXT, SEGMENTS, BLOCKS, EVENTS, HISTORY, PEAKS, OOMS, TAGS,
 PAGES, TORCH) = range(1, 17)
RECORD = {DEVICES: 216, COUNTERS: 576, SITES: 64, SEGMENTS: 64, BLOCKS: 64, EVENTS: 64}
LIVE, FREE = 2, 1
NO_SEGMENT = 0xFFFFFFFF
FROM_PYTHON = 1 << 63


def pad(data, unit):
    return data + b"\0" * (-len(data) % unit)


def recording(regions, minor=6):
    """regions: kind -> bytes of its records, or (bytes, count) of appended ones."""
    table, body = [], b""
    for kind, data in regions.items():
        if isinstance(data, tuple):
            data, count = data
            data = struct.pack("<QQ48x", len(data), count) + data
            entry = (kind, 1, PAGE + len(body), len(data), len(data) - 64)
        else:
            entry = (kind, RECORD[kind], PAGE + len(body), len(data), len(data) // RECORD[kind])
        table.append(struct.pack("<IIQQQ", *entry))
        body += pad(data, PAGE)
    head = bytearray(PAGE)
    struct.pack_into("<16sIHHIIQ", head, 0, MAGIC, ENDIAN, 1, minor, PAGE, len(table), PAGE + len(body))
    struct.pack_into("<I", head, 40, STATE)
    struct.pack_into("<i", head, 100, -1)
    head[1120:1120 + 32 * len(table)] = b"".join(table)
    return bytes(head) + body


def stack(number, native=(), python=()):
    frames = struct.pack(f"<{len(native) + len(python)}Q", *native, *python)
    return struct.pack("<IIQHHI", 24 + len(frames), number, number, len(native), len(python), 0) + frames


def code(number, name, file, lines=b"", version=0x030B):
    body = pad(name + file + lines, 8)
    return struct.pack("<IIIHHII", 24 + len(body), number, 1, version, len(name), len(file), len(lines)) + body


def module(path, start, end):
    body = pad(path + b"\0", 8)
    return struct.pack("<IIQQQ32xQ", 72 + len(body), 0, start, end, start, 0) + body


def device():
    # seq, ordinal, name; the rest is read from a real one where it matters
    return pad(struct.pack("<Ii64s", 2, 0, b"Bomb"), 216)


def counters(live):
    return pad(struct.pack("<QIi5Q", 1, 0, 0, live, live, 0, 0, live), 576)


def block(number, stack_id, size=512, tag=0):
    return struct.pack("<IBBHQQQQIIIIII", 2, LIVE, 1, 0, 0x7F0000000000 + number * size, size, size, 1000 + number,
                       stack_id, 1, NO_SEGMENT, 0, tag, 0)


def event(number, kind, address, size=512, stack_id=1, context=0, detail=0):
    return struct.pack("<QQQQQIIBBHIII", number, 1000 + number, address, size, size, stack_id, number % 7, kind, 1, 0,
                       context, detail, 0)


def common(n_blocks=8, stacks=8):
    return {DEVICES: device(), COUNTERS: counters(n_blocks * 512),
            BLOCKS: b"".join(block(i, i % stacks + 1) for i in range(n_blocks))}


def many(make, bytes_each):
    return b"".join(make(i + 1) for i in range(SIZE // bytes_each)), SIZE // bytes_each


# --- Counts that no writer writes -------------------------------------------------------


def names():
    """A name of 2 MiB, and stacks of 60,000 Python frames that have it."""
    frames = [FROM_PYTHON | 1 << 32 | i for i in range(60000)]
    return recording({**common(), CODES: (code(1, b"f", b"x" * (2 << 20)), 1),
                      STACKS: (b"".join(stack(i, python=frames) for i in range(1, 9)), 8)})


def lines():
    """A line table of 2 MiB, and as many frames that ask for its end."""
    frames = [FROM_PYTHON | 1 << 32 | 0x3FFFFF for i in range(60000)]
    return recording({**common(), CODES: (code(1, b"f", b"x.py", b"\x80" * (2 << 20)), 1),
                      STACKS: (b"".join(stack(i, python=frames) for i in range(1, 9)), 8)})


def modules():
    """60,000 modules, and native frames in the first of them."""
    made = b"".join(module(b"/m", 0x1000 * i, 0x1000 * i + 0xFFF) for i in range(1, 60001))
    return recording({**common(), MODULES: (made, 60000),
                      STACKS: (b"".join(stack(i, native=[0x1000 + k % 4000 for k in range(60000)]) for i in range(1, 9)), 8)})


def devices():
    """Thousands of GPUs."""
    n = SIZE // 216
    return recording({DEVICES: b"".join(pad(struct.pack("<Ii64s", 2, i, b"G"), 216) for i in range(n)),
                      COUNTERS: counters(512)})


# --- As costly as the limits allow ------------------------------------------------------------------------------


def full_python():
    """Stacks of as many frames as there can be, each at another place of one code of the longest names."""
    def one(i):
        return stack(i, python=[FROM_PYTHON | 1 << 32 | (i * 128 + k) * 2 % 65536 for k in range(128)])
    n = SIZE // 4 // 1100
    return recording({**common(SIZE * 7 // 10 // 64, n), CODES: (code(1, b"f" * 255, b"x" * 1023, b"\x80" * 32768), 1),
                      STACKS: (b"".join(one(i) for i in range(1, n + 1)), n)})


def full_codes():
    """Every code that there can be, with the longest line table that fits, each asked for once."""
    n, each = 8192, SIZE // 8 // 8192 - 40
    made = b"".join(code(i, b"f", b"x.py", b"\x80" * each) for i in range(1, n + 1))
    made_stacks = b"".join(stack(i + 1, python=[FROM_PYTHON | (128 * i + k + 1) << 32 | 9999 for k in range(128)])
                           for i in range(64))
    return recording({**common(SIZE * 8 // 10 // 64, 64), CODES: (made, n), STACKS: (made_stacks, 64)})


def full_native():
    """As many native frames as there can be, each at another address of 4096 modules that overlap."""
    made = b"".join(module(b"/none/%d" % i, 0x100000 + i, 0x100000 + 0x10000000 - i) for i in range(1, 4097))
    n = SIZE // 4 // 1100

    def one(i):
        return stack(i, native=[0x101000 + (i * 128 + k) * 16 for k in range(128)])
    return recording({**common(SIZE * 7 // 10 // 64, n), MODULES: (made, 4096), STACKS: (b"".join(one(i) for i in range(1, n + 1)), n)})


def full_blocks():
    """Blocks and stacks, one of each for the other."""
    n = SIZE // 4 // 36
    return recording({**common(SIZE * 7 // 10 // 64, n), STACKS: (b"".join(stack(i, native=[i * 64]) for i in range(1, n + 1)), n)})


def full_events():
    """A ring of allocations from as many stacks, and of resets that take them all away."""
    n = SIZE // 64
    return recording({**common(), EVENTS: b"".join(
        event(i, 8 if i % 2 else 1, i * 4096, stack_id=i, detail=2, context=i % 3) for i in range(1, n + 1))})


def full_arenas():
    """Blocks within blocks: each event lies in another arena, in falling order."""
    n = SIZE // 128
    blocks = b"".join(block(n - i, 1)[:-4] + struct.pack("<I", 1) for i in range(n))
    events = b"".join(event(i, 1 + i % 2, 0x7F0000000000 + (n - i) * 512) for i in range(1, n + 1))
    return recording({DEVICES: device(), COUNTERS: counters(512), BLOCKS: blocks, EVENTS: events})


def full_tags():
    """Ranges one in the other, each with the longest name, and blocks in all of them."""
    def one(i):
        return struct.pack("<IIII", 16 + 80, i, i - 1, 76) + pad(b"t" * 76, 80)
    n = (SIZE - 8192 * 96) // 64
    return recording({DEVICES: device(), COUNTERS: counters(512), TAGS: (b"".join(one(i) for i in range(1, 8193)), 8192),
                      BLOCKS: b"".join(block(i, 1, tag=i % 8192 + 1) for i in range(n))})


def full_text():
    """Lines of one letter."""
    return recording({**common(), TEXT: (b"w\n" * (SIZE // 2), SIZE // 2)})


BOMBS = [names, lines, modules, devices, full_python, full_codes, full_native, full_blocks, full_events, full_arenas,
         full_tags, full_text]
