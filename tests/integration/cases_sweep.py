# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --fit --sweep: a program with several values of its variables, against GPUs."""
import html.parser
import itertools
import json
import os
import re
import signal
import subprocess
import time

from cases_fit import left_over
from cases_launcher import installed, launch
from harness import MIB, expect, expect_equal

BIG = ["--steps", "4", "--width", "{WIDTH}"]


def sweep(world, *arguments, **extra):
    result = launch(world, "--fit", "--json", "--yes", *arguments, **extra)
    expect(result.out.startswith("{"), f"no answer: status {result.status}, stderr {result.err[-800:]!r}")
    expect_equal("what is left", left_over(world), [])
    return result.status, json.loads(result.out)


def values_of(answer, variable="WIDTH"):
    return [run["values"][variable] for run in answer["runs"]]


def runs_on(world, size, width):
    """What a run on a GPU of this size shows."""
    return launch(world, "--off", "--sim", "h100", "--sim-options", f"memory:{size}", world.program("train"), "--steps", "4",
                  "--width", str(width)).status == 0


def case_sweep_makes_a_table_of_values_and_GPUs_of_one_run_each(world):
    status, answer = sweep(world, "--on", "700MiB,l4,600MiB", "--sweep", "WIDTH=64,2048,512", world.program("train"), *BIG)
    expect_equal("the exit status and the runs", (status, values_of(answer)), (0, ["64", "2048", "512"]))
    for run in answer["runs"]:
        for on in run["on"]:
            expect_equal(f"{run['values']} on {on['gpu']}", on["fits"], on["needs_bytes"] <= on["total_bytes"])
            expect_equal("a line where it is short", on["refused_at"] is None, on["fits"])
            if on["gpu"] != "l4":
                expect_equal(f"{run['values']} runs on {on['gpu']}", runs_on(world, on["gpu"], run["values"]["WIDTH"]),
                             on["fits"])
    shown = launch(world, "--fit", "--yes", "--on", "700MiB,l4", "--sweep", "WIDTH=64,2048", world.program("train"), *BIG).out
    for words in "MiB left (+) or missing (-)", "700MiB with WIDTH=2048: by", "refused first is device_alloc":
        expect(words in " ".join(shown.split()), f"{words!r} is not in {shown}")


def case_sweep_finds_the_largest_value_on_each_GPU_and_means_it(world):
    status, answer = sweep(world, "--on", "700MiB,530MiB", "--sweep", "WIDTH=64..1100", world.program("train"), *BIG)
    largest = {row["gpu"]: row["value"] for row in answer["largest"]}
    expect_equal("the exit status", (status, largest["530MiB"]), (1, None))
    value = largest["700MiB"]
    expect_equal(f"{value}, and one more", [runs_on(world, "700MiB", value), runs_on(world, "700MiB", value + 1)], [True, False])
    for tried in value, value + 1:
        expect(str(tried) in values_of(answer), f"{tried} was not run: {values_of(answer)}")
    return f"{largest} by {len(answer['runs'])} runs"


def case_sweep_gives_values_to_the_command_and_to_the_environment(world):
    log = os.path.join(world.folder, "log")
    command = ["/bin/sh", "-c", f'echo "$A $B" "$@" $GPUCACHE_TRIAL $(ls -A $TMPDIR | wc -l) $(ls -A "$6" | wc -l) >>{log}; '
               f'touch $TMPDIR/x "$6/x"; exec {world.program("train")} --steps 2', "-", "{A}", "x{B}{A}{B}y", "{C}", "", "é *", "{OUT}"]
    status, answer = sweep(world, "--jobs", "1", "--sweep", "A=1,2", "--sweep", "B=fp32,bf16", *command)
    with open(log, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    found = [(line[0], line[1], line[2:4], line[4:7], line[-3:]) for line in lines]
    expect_equal("the exit status", status, 0)
    expect_equal("the runs", found, [(a, b, [a, f"x{b}{a}{b}y"], ["{C}", "é", "*"], [str(i + 1), "0", "0"])
                                     for i, (a, b) in enumerate((a, b) for a in "12" for b in ("fp32", "bf16"))])


def case_sweep_tells_a_failure_of_another_kind(world):
    command = ["/bin/sh", "-c", f"{world.program('train')} --steps 2; echo 'no such file: $A' >&2; echo; exit $A"]
    status, answer = sweep(world, "--on", "l4", "--sweep", "A=0,3", *command)
    last = answer["runs"][1]
    expect_equal("the exit status", status, 0)
    expect_equal("the run", (last["measured"], last["ended"], last["said"]), (False, "3", "no such file: $A"))
    status, answer = sweep(world, "--on", "l4", "--sweep", "A=1..9", *command)
    expect_equal("the end", (status, len(answer["runs"]), answer["largest"][0]["end"]), (3, 1, "failed"))
    # The simulated GPU says at the end of a process what kernels did: no word of the program.
    command[2] = f"echo 'no such file: $A' >&2; {world.program('standins')} >/dev/null; exit $A"
    status, answer = sweep(world, "--on", "h100", "--sweep", "A=3", *command)
    expect_equal("what it said last", answer["runs"][0]["said"], "no such file: $A")
    shown = launch(world, "--fit", "--yes", "--on", "l4", "--sweep", "A=0,3", *command).out
    expect("A=3: for another reason than memory: status 3: no such file" in " ".join(shown.split()), shown)


def case_sweep_runs_again_what_a_signal_ends(world):
    """PyTorch aborts now and then at its normal end: that says nothing about the value."""
    mark = os.path.join(world.folder, "mark")
    command = ["/bin/sh", "-c", f"{world.program('train')} --steps 2; test -e {mark}-$A || {{ : >{mark}-$A; kill -ABRT $$; }}"]
    status, answer = sweep(world, "--on", "l4", "--sweep", "A=1,2", *command)
    expect_equal("the runs", (status, [run["ended"] for run in answer["runs"]]), (0, ["0", "0"]))
    command[2] = f"{world.program('train')} --steps 2; echo x >>{mark}; kill -ABRT $$"
    status, answer = sweep(world, "--on", "l4", "--sweep", "A=1", *command)
    with open(mark, encoding="ascii") as file:
        expect_equal("the run that aborts always", (answer["runs"][0]["ended"], file.read()), ("134", "x\nx\n"))


def case_sweep_says_that_a_variable_changes_nothing(world):
    result = launch(world, "--fit", "--yes", "--on", "1GiB", "--sweep", "SIZE=1..64", world.program("train"), "--steps", "4")
    expect("does the program read it?" in result.out, result.out)
    expect("3 runs" in result.out, result.out)


def case_sweep_without_a_GPU_doubles_and_says_what_grows(world):
    _, answer = sweep(world, "--sweep", "WIDTH=256..2048", world.program("train"), *BIG)
    expect_equal("the values", values_of(answer), ["256", "512", "1024", "2048"])
    terms = {row["where"].split("<")[1].split(":")[0].strip(): row["term"] for row in answer["growth"]}
    expect_equal("the law of the weights and of the batch", (terms["load_weights"], terms["load_batch"]), ("WIDTH^2", "WIDTH"))
    _, answer = sweep(world, "--sweep", "WIDTH=512,1024,2048", "--sweep", "BATCH=64,512", world.program("train"), *BIG, "--batch",
                      "{BATCH}")
    terms = {row["where"].split("<")[1].split(":")[0].strip(): row["term"] for row in answer["growth"]}
    expect_equal("the law of the activations", terms["layer_forward"], "WIDTH x BATCH")


def case_sweep_asks_before_it_runs_anything(world):
    mark = os.path.join(world.folder, "mark")
    result = launch(world, "--fit", "--on", "l4", "--sweep", "A=1,2,3", "touch", mark)
    expect_equal("the exit status", (result.status, os.path.exists(mark), left_over(world)), (2, False, []))
    for words in "3 times", f"touch {mark}", "l4 A=2", "may overwrite", "--yes":
        expect(words in result.err, f"{words!r} is not in {result.err}")


def sleepers(word):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and command_of(pid) == f"sleep {word} "]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            return file.read().replace("\0", " ")
    except OSError:
        return ""


def case_sweep_ends_a_run_with_all_that_it_started(world):
    word = f"1000{os.getpid()}"
    train = f"{world.program('train')} --steps 2"
    status, answer = sweep(world, "--sweep", "A=1", "/bin/sh", "-c", f"sleep {word} & {train}")
    expect_equal("the run", (status, answer["runs"][0]["ended"], sleepers(word)), (0, "0", []))
    status, answer = sweep(world, "--time-limit", "1", "--sweep", "A=1", "/bin/sh", "-c", f"sleep {word} & {train}; wait")
    expect_equal("the run", (status, answer["runs"][0]["ended"], sleepers(word)), (3, "late", []))
    status, answer = sweep(world, "--steps", "3", "--sweep", "A=1", world.program("train"), "--steps", "1000000000")
    expect_equal("the run", (status, answer["runs"][0]["ended"]), (0, "stopped"))


def case_sweep_answers_when_it_is_interrupted_and_leaves_nothing(world):
    word = f"2000{os.getpid()}"
    for number in signal.SIGINT, signal.SIGTERM:
        command = [installed(world), "--fit", "--json", "--yes", "--jobs", "1", "--sweep", "A=1,2,3", "/bin/sh", "-c",
                   f"[ $A = 1 ] || sleep {word}; {world.program('train')} --steps 2"]
        child = subprocess.Popen(command, cwd=world.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                 env=world.environment(False, GPUSIM=None, LD_LIBRARY_PATH=None))
        world.children.append(child)
        end = time.monotonic() + world.time_limit()
        while not sleepers(word):
            expect(child.poll() is None and time.monotonic() < end, f"status {child.poll()}")
            time.sleep(0.05)
        child.send_signal(number)
        out, _ = child.communicate(timeout=world.time_limit())
        answer = json.loads(out)
        expect_equal("the runs", [run["ended"] for run in answer["runs"]], ["0", "interrupted"])
        expect_equal("what is left", (left_over(world), sleepers(word)), ([], []))


def case_sweep_keeps_the_recordings_that_are_asked_for(world):
    os.mkdir(os.path.join(world.folder, "kept"))
    sweep(world, "-o", "kept/%p.gpucache", "--sweep", "A=1,2,3", world.program("train"), "--steps", "2")
    expect_equal("the recordings", len(os.listdir(os.path.join(world.folder, "kept"))), 3)
    sweep(world, "-o", "kept", "--sweep", "A=1,2,3", world.program("train"), "--steps", "2")
    expect_equal("the recordings, by the folder's name", len(os.listdir(os.path.join(world.folder, "kept"))), 6)


class Page(html.parser.HTMLParser):
    """A page of --html: its tables by the label of their section, and all its words.  Each tag is closed where it belongs."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.words, self.label, self.title = [], {}, "", None, None
        self.feed(text)
        self.close()
        expect_equal("the tags that are left open", self.open, [])

    def handle_starttag(self, tag, attributes):
        expect(tag in "html head meta link title style body section h1 h2 p table tr th td".split(), f"a tag <{tag}>")
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag == "tr":
            self.tables.setdefault(self.label, []).append([])
        if tag in ("th", "td"):
            self.tables[self.label][-1].append("")

    def handle_endtag(self, tag):
        expect_equal("what is closed", tag, self.open.pop())

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.label = data
        if self.open and self.open[-1] == "h1":
            self.title = data
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[self.label][-1][-1] += data
        self.words += data


def case_the_answer_is_a_page_too(world):
    path, train = os.path.join(world.folder, "page.html"), world.program("train")
    _, answer = sweep(world, "--html", path, "--on", "700MiB,l4", "--sweep", "WIDTH=64,2048", train, *BIG)
    with open(path, encoding="utf-8") as file:
        page = Page(file.read())
    left = {run["values"]["WIDTH"]: [int(f"{(on['total_bytes'] - on['needs_bytes']) // MIB:+}") for on in run["on"]] for run in answer["runs"]}
    expect_equal("the title", page.title, f"Sweep: {' '.join([train, *BIG])} on 700MiB, l4")
    expect(not any(len(row) > 1 and not any(row[1:]) for table in page.tables.values() for row in table), f"an empty row: {page.tables}")
    expect_equal("the heads", page.tables["SWEEP"][0], ["WIDTH", "needs, MiB", "700MiB", "l4"])
    expect_equal("the table", {row[0]: [int(cell) for cell in row[2:]] for row in page.tables["SWEEP"][1:]}, left)
    expect("refused first is device_alloc" in page.words and "FAILED" not in page.words, page.words)
    result = launch(world, "--fit", "--html", path, "--on", "l4", train, "--steps", "2")
    with open(path, encoding="utf-8") as file:
        page = Page(file.read())
    expect_equal("the labels of one run", (result.status, list(page.tables)[:2]), (0, ["NEEDS", "ON"]))
    expect_equal("the title", page.title, "Fit: train on NVIDIA L4, simulated")
    result = launch(world, "--cure", "--yes", "--html", path, "--on", "2GiB", train, "--oom")
    with open(path, encoding="utf-8") as file:
        page = Page(file.read())
    expect_equal("the heads, of which one has no words", (result.status, page.tables["CHANGES"][0]), (1, ["saves", "", "change"]))
    expect("remember_loss" in page.tables["CHANGES"][1][-1], page.tables["CHANGES"])
    expect_equal("the title", page.title, "Cure: train on Simulated GPU, 2.00 GiB")
    expect("with none of the settings that were tried" in page.words, page.words)
    for name in "no/page.html", ".":
        result = launch(world, "--fit", "--html", name, train)
        expect_equal("the end", (result.status, result.err), (2, f"gpucache-run: cannot write {name}\n"))


def case_a_page_has_no_words_of_a_program_as_tags(world):
    folder = os.path.join(world.folder, "tags")
    word = '<script>x</script> & "y" <b'
    write(f"{folder}/plan", "sweep=B=1,2,3\n")
    for number in 1, 2:
        invent(folder, number, "-", {"B": number}, {"-": (100 * number, 0)}, [(word, 100 * number)])
    write(f"{folder}/3/trial", "gpu=-\nset=B=3\nended=3\n")
    write(f"{folder}/3/said", word)
    page = Page(world.run([os.path.join(world.build, "gpumem-report"), "sweep", "--html", folder], with_us=False).out)
    expect_equal("the line", page.tables["GROWTH"][1][-1], word)
    expect(f"status 3: {word}" in page.words, page.words)
    for arguments in ("summary", "--html"), ("sweep", "--html", "--json", folder):
        result = world.run([os.path.join(world.build, "gpumem-report"), *arguments], with_us=False)
        expect(result.status == 2 and "--html" in result.err, f"{arguments}: {result.status}, {result.err}")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def search(world, need, total, to, on="l4,h100", folders=itertools.count()):
    """Answers each question of `sweep --next` by a formula; returns the values tried, by GPU."""
    folder = os.path.join(world.folder, f"search-{next(folders)}")
    report = [os.path.join(world.build, "gpumem-report"), "sweep"]
    gpus = on.split(",")
    write(f"{folder}/plan", f"on={on}\nsweep=N=1..{to}\n")
    tried = {gpu: [] for gpu in gpus}
    bounds = None
    for _ in range(100):
        lines = world.run([*report, "--next", folder], with_us=False).out.splitlines()
        bounds = bounds or [int(word) for word in lines[-1].split()[1:]]
        if lines[0].startswith("runs"):
            n = sum(map(len, tried.values()))
            expect(bounds[0] <= n <= bounds[1], f"{n} runs, and {bounds} were announced: {tried}")
            shown = json.loads(world.run([*report, "--json", folder], with_us=False).out)
            return tried, {row["gpu"]: row["value"] for row in shown["largest"]}
        gpu, value = lines[0].split()
        value = int(value.partition("=")[2])
        tried[gpu].append(value)
        place = f"{folder}/{sum(map(len, tried.values()))}"
        size = need(value)
        cut = size is not None and size > 1 << 20  # more than the GPU without limit has
        write(f"{place}/trial", f"gpu={gpu}\nset=N={value}\nended={int(size is None or cut)}\n")
        for number, name in enumerate(gpus):
            needs = min(size or 0, 1 << 20) * MIB
            write(f"{place}/{name}.json", json.dumps({
                "asked_bytes": needs, "holders": [], "caches": [{"needs_bytes": needs}],
                "cut_short": {"number": 1} if cut else None, "on": {"fits": needs <= total[number] * MIB}}))
    raise AssertionError(f"no end: {tried}")


def invent(folder, number, gpu, values, needs, holders=()):
    """The folder of a run that needed so many MiB on each GPU of `needs`."""
    write(f"{folder}/{number}/trial", f"gpu={gpu}\n" + "".join(f"set={name}={value}\n" for name, value in values.items()) + "ended=0\n")
    for name, (size, total) in needs.items():
        write(f"{folder}/{number}/{name}.json", json.dumps({
            "asked_bytes": size * MIB, "holders": [{"where": where, "live_bytes": held * MIB} for where, held in holders],
            "caches": [{"needs_bytes": size * MIB, "smallest_device_bytes": size * MIB}], "on": {"fits": size <= total}}))


def case_sweep_asks_a_GPU_itself_where_another_ones_answer_is_near(world):
    folder, report = os.path.join(world.folder, "near"), [os.path.join(world.build, "gpumem-report"), "sweep"]
    write(f"{folder}/plan", "on=h100,l4,rtx3090\nsweep=N=1,2\n")
    totals = {"h100": 81079, "l4": 22559, "rtx3090": 24258}
    for number, size in (1, 22500), (2, 20000):
        invent(folder, number, "h100", {"N": number}, {name: (size, total) for name, total in totals.items()})
    found = world.run([*report, "--next", folder], with_us=False).out.splitlines()
    expect_equal("what is missing", found, ["l4 N=1", "runs 2 6"])
    invent(folder, 3, "l4", {"N": 1}, {name: (22570, total) for name, total in totals.items()})
    found = world.run([*report, "--next", folder], with_us=False).out.splitlines()
    expect_equal("what is missing then", found, ["runs 2 6"])
    shown = world.run([*report, folder], with_us=False).out
    expect("-11" in shown, shown)


def case_sweep_finds_the_law_of_each_line(world):
    folder = os.path.join(world.folder, "laws")
    write(f"{folder}/plan", "sweep=B=1,2,4\nsweep=S=10,20,30\n")
    number = 0
    for b in 1, 2, 4:
        for s in 10, 20, 30:
            number += 1
            rows = (("weights", 400), ("layer", 50 + 3 * b * s), ("attention", b * s * s // 2), ("text", 7 * s), ("noise", 50 * (number % 3) ** 2))
            invent(folder, number, "-", {"B": b, "S": s}, {"-": (sum(size for _, size in rows), 0)}, rows)
    shown = json.loads(world.run([os.path.join(world.build, "gpumem-report"), "sweep", "--json", folder], with_us=False).out)
    laws = {row["where"]: (row["term"], row["bytes_each"]) for row in shown["growth"]}
    expect_equal("the laws", laws, {"layer": ("B x S", 3 * MIB), "attention": ("B x S^2", MIB // 2), "text": ("S", 7 * MIB)})


MIB_OF = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}


def case_the_lines_of_a_law_and_all_others_add_up_to_it(world):
    folder = os.path.join(world.folder, "sums")
    write(f"{folder}/plan", "sweep=B=1,2,4\n")
    for number, b in enumerate((1, 2, 4), 1):
        rows = [(f"layer {n}", 10 + n * b) for n in range(20, 32)] + [("weights", 700), ("elsewhere", 100 - 25 * b)]
        invent(folder, number, "-", {"B": b}, {"-": (sum(size for _, size in rows), 0)}, rows)
    shown = world.run([os.path.join(world.build, "gpumem-report"), "sweep", folder], with_us=False).out
    table = shown[shown.index("GROWTH"):].splitlines()
    rows = [re.match(r"\s*(-?[\d.]+) (.iB)  a B\s+(-?[\d.]+) (.iB)  (.*)", line) for line in table[2:] if line.strip()]
    expect(all(rows), shown)
    expect_equal("the rows", [row[5] for row in rows], [f"layer {n}" for n in range(31, 23, -1)] + ["all others"])
    each, growth = (sum(float(row[i]) * MIB_OF[row[i + 1]] for row in rows) for i in (1, 3))
    all_ = sum(range(20, 32)) - 25
    expect(f"{all_}.00 MiB a B" in table[0] and (each, growth) == (all_, 3 * all_), f"{each} and {growth}, not {all_}: {shown}")


def case_sweep_announces_no_more_runs_than_may_be_enough(world):
    for what, law, found in (("nothing fits", lambda n: 99999, None), ("a run fails", lambda n: None, None), ("all fits", lambda n: 1 + n, 9)):
        tried, largest = search(world, law, (20000, 30000), 9)
        expect_equal(what, largest, {"l4": found, "h100": found})
        if what == "a run fails":
            expect_equal("the runs", tried, {"l4": [1], "h100": []})


def case_sweep_finds_the_largest_below_runs_that_fail_or_are_cut_short(world):
    for what, law, largest in (("a failure", lambda n: 100 + n if n <= 37 else None, 37),
                               ("more than 1 TiB", lambda n: 100 + 3000 * n if n > 5 else 100 + n * n, 6)):
        tried, found = search(world, law, (20000, 30000), 4000)
        expect_equal(what, found, {"l4": largest, "h100": largest + 3 * (largest == 6)})
    return f"{tried}"


def case_sweep_says_that_a_program_outgrows_every_GPU(world):
    grows = [world.program("train"), "--grow", str(96 * MIB), "--steps", "3000", "--hold-at", "2500"]
    status, answer = sweep(world, "--on", "l4", "--sweep", "A=1..9", *grows)
    expect_equal("the end", (status, answer["largest"][0]["end"], answer["runs"][0]["ended"]), (1, "none", "grown"))
    shown = launch(world, "--fit", "--yes", "--on", "l4", "--sweep", "A=3", *grows).out
    expect("A=3: it outgrew every GPU" in " ".join(shown.split()), shown)


def case_sweep_finds_any_largest_value_with_few_runs(world):
    most = 0
    for law in (lambda n: 500 + 37 * n, lambda n: 100 + n * n // 9, lambda n: 64 * (n // 40) + n // 2, lambda n: 1 + n * n * n // 70):
        for total in (20000, 70000), (900, 22000), (60, 70):
            for to in 9, 4000:
                tried, found = search(world, law, total, to)
                for gpu, room in zip(tried, total):
                    right = max((n for n in range(1, to + 1) if law(n) <= room), default=None)
                    expect_equal(f"the largest on {gpu}, of {total}, to {to}, {tried}", found[gpu], right)
                    most = max(most, len(tried[gpu]))
    expect(most <= 4 + 12, f"{most} runs")
    return f"at most {most} runs for a GPU"
