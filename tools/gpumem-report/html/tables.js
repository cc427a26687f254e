/* Everything in words and numbers: verdict, moment, holders, balance, ranges, ranks, notes. */
const ROWS = 50;

/* The output of `gpumem-report oom --json` for that failure. */
const oomView = (run, number) => run.ooms.find(oom => oom && oom.number === number);

const field = (name, value) => value ? [make("dt", {}, name), make("dd", {}, value)] : [];

function paintVerdict() {
  const { run, device } = state.view;
  const { recording, verdict } = run.summary;
  const box = byId("verdict");
  const oom = verdict && oomView(run, verdict.oom_number);
  box.className = oom ? "card failed" : "card";
  if (oom) {
    box.replaceChildren(
      make("p", { class: "word", "data-verdict": oom.verdict.word }, `Out of memory: ${oom.verdict.word}`,
        make("span", { class: "dim" }, ` (${oom.verdict.strength})`)),
      make("dl", {}, ...field("Why", oom.verdict.why), ...field("Held", oom.verdict.held), ...oom.verdict.try.map((row) => field("Try", row.advice)).flat(),
        ...field("Short", `${showBytes(oom.request.short_by_bytes)} of ${showBytes(oom.request.requested_bytes)} asked for, on GPU ${oom.device.ordinal}`),
        ...field("Rerun", oom.verdict.rerun), ...field("Also", oom.verdict.also.join(", ")), ...field("Range", oom.request.tag)));
    return;
  }
  const ended = { ended: "ended", alive: "is running", killed: "was killed", exited: "ended by _exit" }[recording.state] || recording.state;
  box.replaceChildren(
    make("p", { class: "word" }, run.summary.recovered_failures ? `${run.summary.recovered_failures} failures, all recovered from` : "No request failed"),
    make("p", {}, `The process ${ended}. `,
      device.peak ? `At the peak ${showBytes(device.peak.live)} were live on GPU ${device.ordinal}, ${showShare(device.peak.live, device.total)} of it` : "",
      device.peak ? `; ${showBytes(device.peak.reserved)} were reserved.` : ""));
}

function momentName(moment) {
  switch (moment.kind) {
  case "peak": return "the peak";
  case "oom": return `failure ${moment.oom.number}: ${showBytes(moment.oom.requested)} asked for${moment.oom.recovered ? ", recovered" : ""}`;
  case "end": return { ended: "the end", alive: "now", killed: "when it was killed", exited: "when it exited" }[state.view.run.summary.recording.state] || "the end";
  default: return "a local peak";
  }
}

/* A button for this many failures of a kind; of more, one that goes from each to the next. */
const FEW = 3;

function paintMoments() {
  const { view } = state;
  const chip = (words, kind, isPressed, go) => make("button", { type: "button", "aria-pressed": isPressed, "data-kind": kind, onclick: go }, words);
  const ofMoment = moment => chip(momentName(moment), moment.kind, moment === state.moment, () => selectMoment(moment));
  const some = view.moments.filter(moment => moment.kind !== "event");
  const failures = [true, false].map(isRecovered => some.filter(({ kind, oom }) => kind === "oom" && Boolean(oom.recovered) === isRecovered));
  const many = failures.filter(list => list.length > FEW);
  const next = list => list.find(moment => moment.index > state.moment.index) || list[0];
  byId("moments").replaceChildren(
    ...many.map(list => chip(`${list.length} failures${list[0].oom.recovered ? ", recovered from" : ""}: next`, "oom", list.includes(state.moment), () => selectMoment(next(list)))),
    ...some.filter(moment => moment === state.moment || !many.some(list => list.includes(moment))).map(ofMoment),
    ...view.siblings.filter(one => one.ooms.length).map(one => chip(`${one.name}: ${showCount(one.ooms.length)} failure${one.ooms.length > 1 ? "s" : ""}`, "other", false,
      () => { selectView(one); selectMoment(one.moments.find(moment => moment.kind === "oom" && !moment.oom.recovered) || one.moments.find(moment => moment.kind === "oom")); })));
}

function paintMoment() {
  const { moment } = state;
  const holders = moment.holders();
  const sum = holders.reduce((total, holder) => total + holder.bytes, 0);
  const idle = holders.filter(isIdle).reduce((total, holder) => total + holder.bytes, 0);
  const item = (name, value) => make("span", {}, make("span", { class: "dim" }, `${name} `), value);
  byId("moment").replaceChildren(
    make("b", {}, showTime(moment.t)), make("span", {}, momentName(moment)),
    item("in use, as asked for", make("strong", { id: "moment-bytes", "data-bytes": sum, title: showExact(sum) }, showBytes(sum))),
    idle ? item(`of it ${state.view.cacheName}`, make("strong", {}, showBytes(idle))) : "",
    moment.live === null ? "" : item("rounded", make("strong", { "data-live": moment.live }, showBytes(moment.live))),
    moment.tag ? item("in", moment.tag) : "");
  paintMoments();
}

function stackRow(row) {
  const { run } = state.view;
  const biggest = [...row.stacks].sort((a, b) => b.bytes - a.bytes).slice(0, 5);
  const texts = biggest.map(holder => {
    const lines = run.stacks[holder.stack][3].map(i => run.frames[i][0]);
    return make("pre", {}, `${showBytes(holder.bytes)} in ${showCount(holder.blocks)} blocks\n`, ...marked(lines.map(line => `  ${line}`).reverse().join("\n")));
  });
  if (row.stacks.length > 5) texts.push(make("p", { class: "dim" }, `and ${row.stacks.length - 5} more stacks`));
  return make("tr", {}, make("td", { colspan: 4 }, ...texts));
}

/* The colour that the timeline has for the bytes of a row. */
const colourOfRow = row => row.where === state.view.cacheName ? "torch" : row.stacks.length && row.stacks.every(holder => isAsked(state.view.run, holder)) ? "live" : "rest";

/* A row that shows its stacks on a click or Enter. */
function holderRow(row, total) {
  const line = make("tr", { class: row.stacks.length ? "opens" : "", tabindex: row.stacks.length ? 0 : null, "data-where": row.where, "data-bytes": row.bytes },
    bytesCell(row.bytes), make("td", { class: "bar" }, make("i", { style: `width: ${100 * row.bytes / Math.max(total, 1)}%; background: var(--${colourOfRow(row)})` })),
    make("td", { class: "number optional" }, showCount(row.blocks)), make("td", {}, ...marked(row.where)));
  let stacks = null;
  const toggle = () => {
    if (stacks) stacks.remove();
    else line.after(stacks = stackRow(row));
    if (!stacks.isConnected) stacks = null;
  };
  if (row.stacks.length) {
    line.addEventListener("click", toggle);
    line.addEventListener("keydown", event => { if (event.key === "Enter") toggle(); });
  }
  return line;
}

const frameNames = (run, holder) => run.stacks[holder.stack][3].map(i => run.frames[i][0]);

function paintHolders() {
  const { run } = state.view;
  const rows = siteRows(run, state.moment.holders());
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  const found = state.search === "" ? rows
    : rows.filter(row => isFound(row.where) || row.stacks.some(holder => frameNames(run, holder).some(isFound)));
  const rest = found.slice(ROWS);
  byId("holders").replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, make("th", { class: "number" }, "bytes"), make("th", {}), make("th", { class: "number optional" }, "blocks"), make("th", {}, "call site"))),
    make("tbody", {}, ...found.slice(0, ROWS).map(row => holderRow(row, total)))));
  if (rest.length)
    byId("holders").append(make("p", { class: "dim" }, `and ${showCount(rest.length)} more call sites with ${showBytes(rest.reduce((sum, row) => sum + row.bytes, 0))}`));
  if (found.length === 0) byId("holders").append(make("p", { class: "dim" }, rows.length ? "No match." : "Nothing is held."));
}

const SHEET = [
  ["requested_bytes", "held by the program", "live"], ["rounding_bytes", "lost to rounding", "rest"], ["pending_bytes", "freed, not yet safe to reuse", "pending"],
  ["cached_bytes", OUR_CACHE, "cached"], ["direct_bytes", "straight from the driver", "rest"],
  ["process_outside_bytes", "this process, not tracked", "outside"], ["other_processes_bytes", "other processes", "outside"],
  ["driver_reserve_bytes", "reserved by the driver", "unknown"], ["unattributed_bytes", "in use, owner unknown", "unknown"], ["free_bytes", "free", "free"],
];

/* A failure's own numbers, or the summary's; and of when they are. */
function sheetOf({ view, moment }) {
  const ranOut = view.summary && view.summary.moment === "oom" && view.ooms.filter(one => !one.recovered).pop();
  const number = moment.kind === "oom" ? moment.oom.number : ranOut ? ranOut.number : 0;
  const oom = number && oomView(view.run, number);
  const when = oom ? `at failure ${oom.number}` : view.summary && view.summary.moment === "oom" ? "when memory ran out" : "at the end";
  return { sheet: oom || view.summary, when };
}

/* What is straight from the driver, by kind; of PyTorch's pages only what is in tensors. */
function kindsOf(kinds, idle) {
  return kinds.map(({ kind, bytes }) => kind === "physical memory" && idle ? `${kind} in tensors ${showBytes(bytes - idle)}` : `${kind} ${showBytes(bytes)}`).join(", ");
}

/* The lines of the balance; PyTorch's cache in no tensor is a line of its own, taken from the one that it is in. */
function linesOf({ balance, torch }) {
  const idle = torch ? torch.reserved_bytes - torch.allocated_bytes : 0;
  const from = torch && torch.reserved_bytes > balance.requested_bytes ? "direct_bytes" : "requested_bytes";
  const taken = Math.min(idle, balance[from]);
  return SHEET.flatMap(([key, words, name]) => {
    const bytes = key === from ? balance[key] - taken : balance[key];
    const own = { key, bytes, words: key === from && taken && key === "requested_bytes" ? `${words}, ${state.view.cacheName.includes("tensor") ? "in tensors" : "in arrays"} and other blocks` : words, name,
      kinds: key === "direct_bytes" ? kindsOf(balance.direct_kinds, key === from ? taken : 0) : "" };
    const part = { key: "idle_bytes", bytes: taken, words: state.view.cacheName, name: "torch" };
    return [...(bytes || key === "free_bytes" ? [own] : []), ...(key === from && taken > 0 ? [part] : [])];
  });
}

function paintBalance() {
  const { sheet, when } = sheetOf(state);
  const balance = sheet && sheet.balance;
  const box = byId("balance");
  box.hidden = !balance;
  if (!balance) return;
  const lines = linesOf(sheet);
  box.replaceChildren(make("h2", {}, `Where every byte is, ${when}`),
    make("div", { class: "sheet" }, ...lines.map(({ bytes, words, name }) =>
      make("i", { style: `width: ${100 * bytes / balance.total_bytes}%; background: var(--${name})`, title: `${words}: ${showBytes(bytes)}` }))),
    make("table", {}, ...lines.map(({ key, bytes, words, name, kinds }) => make("tr", { "data-line": key },
      bytesCell(bytes), make("td", { class: "number" }, showShare(bytes, balance.total_bytes)),
      make("td", {}, make("span", { class: "swatch", style: `background: var(--${name})` }), words,
        kinds ? make("div", { class: "dim" }, kinds) : ""))),
      make("tr", { "data-line": "total_bytes" }, bytesCell(balance.total_bytes), make("td", {}), make("td", {}, `all of the GPU; difference ${balance.difference_bytes}`)),
      balance.spilled_bytes ? make("tr", { "data-line": "spilled_bytes" }, bytesCell(balance.spilled_bytes), make("td", { class: "number" }, showShare(balance.spilled_bytes, balance.total_bytes)), make("td", {}, "beyond it, spilled to host memory")) : ""));
}

function paintTags() {
  const { view, moment } = state;
  const { sheet, when } = sheetOf(state);
  const tags = (sheet && sheet.tags) || [];
  const purposes = view.words.map((word, i) => ({ word, i, bytes: moment.purposes[i] })).filter(row => row.bytes).sort((a, b) => b.bytes - a.bytes);
  const total = purposes.reduce((sum, row) => sum + row.bytes, 0);
  const box = byId("tags");
  box.hidden = tags.length + purposes.length === 0;
  const table = (name, rows) => rows.length === 0 ? "" : make("div", {}, make("h2", {}, name), make("table", {}, ...rows));
  box.replaceChildren(
    table("What it is for", purposes.map(({ word, i, bytes }) => make("tr", { "data-purpose": word }, bytesCell(bytes), make("td", { class: "number" }, showShare(bytes, total)),
      make("td", {}, make("span", { class: "swatch", style: `background: var(--purpose-${i})` }), ...marked(word))))),
    table(`By the program's ranges, ${when}`, tags.slice(0, 20).map(row => make("tr", {}, bytesCell(row.live_bytes),
      make("td", { class: "number optional" }, showCount(row.blocks)), make("td", {}, ...marked(row.tag || "(in no range)"))))));
}

function countFailures(view) {
  const n = view.ooms.filter(oom => oom.recovered).length;
  return [view.ooms.length > n ? showCount(view.ooms.length - n) : "", n ? `${showCount(n)} recovered from` : ""].filter(words => words).join(", ");
}

/* A line per process and GPU; the odd one out is highlighted. */
function paintRanks() {
  const box = byId("ranks");
  box.hidden = views.length < 2;
  if (box.hidden) return;
  const most = d3.max(views, view => view.device.peak ? view.device.peak.live : 0) || 1;
  box.replaceChildren(make("h2", {}, "All processes and GPUs"), make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, make("th", {}, "who"), make("th", { class: "number" }, "peak live"), make("th", {}), make("th", { class: "number optional" }, "live at the end"), make("th", { class: "number" }, "failures"), make("th", {}, "how it ended"))),
    make("tbody", {}, ...views.map(view => {
      const peak = view.device.peak ? view.device.peak.live : 0;
      const verdict = view.run.summary.verdict && view.ooms.some(oom => !oom.recovered) ? `out of memory: ${view.run.summary.verdict.word}` : view.run.summary.recording.state;
      return make("tr", { class: `opens ${view === state.view ? "selected" : ""}`, onclick: () => selectView(view) },
        make("td", {}, view.name), bytesCell(peak), make("td", { class: "bar" }, make("i", { style: `width: ${100 * peak / most}%` })),
        make("td", { class: "number optional" }, showBytes(view.device.end.holders.reduce((sum, n, i) => i % 3 === 1 ? sum + n : sum, 0))),
        make("td", { class: "number" }, countFailures(view)), make("td", {}, verdict));
    })))));
}

function paintNotes() {
  const { recording } = state.view.run.summary;
  const lost = ["blocks", "stacks", "segments", "tags"].filter(what => recording[`dropped_${what}`]).map(what => `${showCount(recording[`dropped_${what}`])} ${what} did not fit into the recording.`);
  const problems = (recording.problems || []).map(problem => `${problem.region}: ${problem.problem}`);
  byId("notes").replaceChildren(...[
    `${recording.path}; gpucache ${recording.library_version || "?"}.`,
    state.view.rows.length && state.view.rows[0].t > 0 ? `Who held what is known of every moment from ${showTime(state.view.rows[0].t)} on; before that, of the peak and of failures.` : "",
    recording.sampled_below_bytes ? `Stacks were sampled below ${showBytes(recording.sampled_below_bytes)}: sums by call site are right in the mean.` : "",
    ...lost, ...problems].filter(line => line).map(line => make("p", {}, line)));
}

painters.view.push(paintVerdict, paintRanks, paintNotes);
painters.moment.push(paintMoment, paintHolders, paintBalance, paintTags);
painters.search.push(paintHolders, paintTags);
