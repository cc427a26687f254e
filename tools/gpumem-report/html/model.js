/*
 * Makes views of the data.  A view is a GPU of a process.  Its moments are those at which the holders are known: the
 * peak, the failures, the end, and the rows of the ring of events.
 */
const FLAG = { python: 1, library: 2, what: 4 };
const REST = "(others, not listed)";

function makeView(run, device, index) {
  const summary = run.summary.devices.find(one => one.ordinal === device.ordinal);
  const view = { run, device, summary, index, ooms: device.ooms };
  view.endTime = Math.max(device.end.t, ...device.ooms.map(oom => oom.t), device.peak ? device.peak.t : 0, 1);
  view.words = device.purpose_words;
  view.rows = readRows(device.moments);
  view.levels = readLevels(device.levels);
  view.moments = makeMoments(view);
  view.points = makePoints(view);
  view.idle = makeIdle(view);
  view.isSampled = view.points.some(point => point.isSampled);
  view.cacheName = device.end.unused_is;
  view.limit = device.ooms.reduce((least, oom) => oom.limit ? Math.min(least, oom.limit) : least, device.total);
  view.name = nameOf(run, device);
  return view;
}

/* "gpt.py (python3.12)" */
function programName(recording) {
  const exe = (recording.exe || "?").split("/").pop();
  const script = scriptOf(recording);
  return script ? `${script} (${exe})` : exe;
}

function scriptOf(recording) {
  const isPython = (recording.exe || "").split("/").pop().startsWith("python");
  const script = isPython && (recording.command || "").split(" ").slice(1).find(word => word.endsWith(".py"));
  return script ? script.split("/").pop() : "";
}

const hasRank = recording => recording.rank !== null && recording.rank !== undefined;

/* "gpt.py, rank 1, GPU 0" */
function nameOf(run, device) {
  const { recording } = run.summary;
  const who = `${scriptOf(recording) || programName(recording)}, ${hasRank(recording) ? `rank ${recording.rank}, ` : ""}pid ${recording.pid}`;
  return DATA.runs.length > 1 ? `${who}, GPU ${device.ordinal}` : `GPU ${device.ordinal}`;
}

/* moments.rows has five numbers per row: time, live bytes, range, end of its deltas, events up to it. */
function readRows(moments) {
  const rows = [];
  for (let i = 0; i < moments.rows.length; i += 5) {
    const [t, live, tag, end, events] = moments.rows.slice(i, i + 5);
    rows.push({ t, live, tag, end, events });
  }
  return rows;
}

/* Two for each row: at its moment, and at the end of its slice. */
function readLevels(flat) {
  const levels = [];
  for (let i = 0; i < flat.length; i += 12)
    levels.push({ t: flat[i], live: flat[i + 1], idle: flat[i + 2], reserved: flat[i + 3], purposes: flat.slice(i + 4, i + 12) });
  return levels;
}

/* `flat` has three numbers per holder: stack, bytes, blocks.  `unused` and `rest` are bytes without a stack. */
function readHolders({ holders: flat, torch_unused: unused, unused_is: label, rest }) {
  const holders = [];
  for (let i = 0; i < flat.length; i += 3)
    holders.push({ stack: flat[i], bytes: flat[i + 1], blocks: flat[i + 2] });
  if (unused) holders.push({ stack: null, label, bytes: unused, blocks: 0 });
  if (rest) holders.push({ stack: null, label: REST, bytes: rest, blocks: null });
  return holders;
}

/* The holders of a row: the sums of all deltas up to the row's `end`. */
function sumDeltas(moments, end) {
  const bytes = new Map();
  const blocks = new Map();
  for (let i = 0; i < 3 * end; i += 3) {
    const stack = moments.deltas[i];
    bytes.set(stack, (bytes.get(stack) || 0) + moments.deltas[i + 1]);
    blocks.set(stack, (blocks.get(stack) || 0) + moments.deltas[i + 2]);
  }
  const holders = [];
  for (const [stack, sum] of bytes)
    if (sum > 0) holders.push({ stack, bytes: sum, blocks: blocks.get(stack) });
  return holders;
}

/* The moments in order of time.  The peak does not have the bytes of PyTorch's cache in no tensor. */
function makeMoments(view) {
  const { device } = view;
  const idleOf = i => view.levels[2 * i].idle ? [{ stack: null, label: device.end.unused_is, bytes: view.levels[2 * i].idle, blocks: 0 }] : [];
  const moments = view.rows.map((row, i) => ({
    kind: "event", t: row.t, live: row.live, tag: view.run.tags[row.tag], purposes: view.levels[2 * i].purposes,
    holders: () => [...sumDeltas(device.moments, row.end), ...idleOf(i)],
  }));
  if (device.peak)
    moments.push({ kind: "peak", t: device.peak.t, live: device.peak.live, purposes: device.peak.purposes,
      holders: () => readHolders(device.peak) });
  for (const oom of device.ooms)
    moments.push({ kind: "oom", t: oom.t, live: null, oom, purposes: oom.purposes, holders: () => readHolders(oom) });
  moments.push({ kind: "end", t: device.end.t, live: null, purposes: device.end.purposes, holders: () => readHolders(device.end) });
  const order = { event: 0, peak: 1, oom: 2, end: 3 };
  moments.sort((a, b) => a.t - b.t || order[a.kind] - order[b.kind]);
  moments.forEach((moment, i) => { moment.index = i; });
  return moments;
}

/*
 * The whole run as points {t, live, idle, pending, reserved, purposes, isSampled}, each of which holds until the next.
 * Where there are events: the levels after them.  Elsewhere, and if their `reserved` is not exact: samples of the
 * history.  A sample is of an interval, and counts from its end on: it is never drawn before it was taken.  Pending bytes
 * are always samples.  A failure has the numbers of its balance.
 */
function makePoints(view) {
  const { history, peak, ooms } = view.device;
  const { levels } = view;
  const isKnown = t => levels.length > 0 && t >= levels[0].t;
  const samples = history.t.map((t, i) => ({ t: Math.min(t + history.interval, view.endTime), live: history.live[i], idle: 0, pending: history.pending[i], reserved: history.reserved[i], isSampled: true }));
  const before = (list, t) => list[d3.bisector(one => one.t).right(list, t) - 1];
  const mix = (level, sample) => ({ ...level, pending: sample ? sample.pending : 0,
    reserved: level.reserved ?? (sample ? sample.reserved : 0), isSampled: level.reserved === null });
  const points = samples.map(sample => isKnown(sample.t) ? { ...mix(before(levels, sample.t), sample), t: sample.t } : sample);
  for (const level of levels) points.push(mix(level, before(samples, level.t)));
  if (peak && !isKnown(peak.t)) points.push({ t: peak.t, live: peak.live, idle: 0, pending: 0, reserved: peak.reserved, isSampled: true });
  points.sort((a, b) => a.t - b.t);
  for (const oom of ooms) addFailure(points, oom, isKnown(oom.t));
  const lasts = points.filter((point, i) => i + 1 === points.length || point.t < points[i + 1].t);
  for (const point of lasts) {
    point.reserved = Math.max(point.reserved, point.live + point.idle);
    point.pending = Math.min(point.pending, point.reserved - point.live - point.idle);
  }
  /* After the last point nothing changed until the end. */
  if (lasts.length) lasts.push({ ...lasts[lasts.length - 1], t: view.endTime });
  return lasts;
}

/* The balance of a failure, after the point before it; what is exact there by events stays. */
function addFailure(points, oom, isKnown) {
  const [live, idle, pending, reserved] = oom.levels;
  if (!reserved) return;
  const at = d3.bisector(point => point.t).right(points, oom.t);
  const before = points[at - 1];
  const isExact = isKnown && before && !before.isSampled;
  points.splice(at, 0, { ...before, t: oom.t, pending, ...(isExact ? {} : { live, idle, reserved, isSampled: false }) });
}

/* The stretches of time [from, to] in which nothing changed and nothing failed, longest first. */
function makeIdle(view) {
  const busy = [0, ...view.ooms.map(oom => oom.t), view.endTime];
  const key = point => `${point.live} ${point.idle} ${point.reserved} ${point.pending}`;
  view.points.forEach((point, i) => { if (i === 0 || key(point) !== key(view.points[i - 1])) busy.push(point.t); });
  busy.sort((a, b) => a - b);
  return busy.slice(1).map((t, i) => [busy[i], t]).filter(([from, to]) => to > from).sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
}

const sitesOf = (run, holder) => holder.stack === null ? [holder.label] : run.stacks[holder.stack][0];
const viaOf = (run, holder) => holder.stack === null ? "" : run.stacks[holder.stack][1];
/* PyTorch's cache in no tensor. */
const isIdle = holder => holder.stack === null && holder.label !== REST;
const isAsked = (run, holder) => holder.stack !== null && !run.stacks[holder.stack][2];

/* Describes a row as call_sites.c does: "alloc  train.c:9, via gelu < remember:140 < main:200", with the callers that all have. */
function describeRow(run, holders) {
  const common = of => holders.every(one => of(one) !== undefined && of(one) === of(holders[0]));
  const via = common(one => viaOf(run, one)) && viaOf(run, holders[0]);
  const sites = sitesOf(run, holders[0]);
  let depth = 1;
  while (depth < sites.length && common(one => sitesOf(run, one)[depth])) depth++;
  return sites[0] + (via ? `, via ${via}` : "") + sites.slice(1, depth).join("");
}

function groupBy(list, key) {
  const groups = new Map();
  for (const one of list) {
    const k = key(one);
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(one);
  }
  return [...groups.values()];
}

/*
 * Call sites, as in gpumem-report: a place that holds more than half of everything for several callers is a wrapper,
 * and its callers become the rows.
 */
function siteRows(run, holders) {
  const half = Math.floor(holders.reduce((sum, one) => sum + (isAsked(run, one) ? one.bytes : 0), 0) / 2);
  const rows = [];
  const addRow = group => {
    rows.push({
      where: describeRow(run, group),
      bytes: group.reduce((sum, one) => sum + one.bytes, 0),
      blocks: group[0].blocks === null ? null : group.reduce((sum, one) => sum + one.blocks, 0),
      stacks: group.filter(one => one.stack !== null),
    });
  };
  const addRows = (list, level) => {
    for (const group of groupBy(list, one => sitesOf(run, one)[level])) {
      const callers = new Set(group.map(one => sitesOf(run, one).slice(level + 1).join("\n")));
      if (group.reduce((sum, one) => sum + one.bytes, 0) <= half || group[0].stack === null) addRow(group);
      else if (callers.size > 1) addRows(group, level + 1);
      else for (const part of groupBy(group, one => viaOf(run, one))) addRow(part);
    }
  };
  addRows(holders, 0);
  return rows.sort((a, b) => b.bytes - a.bytes || (a.where < b.where ? -1 : 1));
}

/* The names of a stack, outermost first: all of them, or only the program's; without those, the call site. */
function pathOf(run, holder, withLibraries) {
  if (holder.stack === null) return [{ name: holder.label, flags: FLAG.what }];
  const frames = run.stacks[holder.stack][3].map(i => ({ name: run.frames[i][0], flags: run.frames[i][1] }));
  const own = frames.filter(frame => !(frame.flags & FLAG.library));
  if (withLibraries) return frames;
  return own.length ? own : [{ name: sitesOf(run, holder)[0], flags: FLAG.library }];
}

function flameTree(run, holders, name, withLibraries) {
  const root = { name, flags: 0, bytes: 0, blocks: 0, own: 0, children: new Map() };
  for (const holder of holders) {
    let at = root;
    const path = pathOf(run, holder, withLibraries);
    const via = viaOf(run, holder);
    if (!withLibraries && via) path.push({ name: via, flags: FLAG.library });
    for (const frame of [null, ...path]) {
      if (frame) {
        if (!at.children.has(frame.name))
          at.children.set(frame.name, { ...frame, bytes: 0, blocks: 0, own: 0, children: new Map() });
        at = at.children.get(frame.name);
      }
      at.bytes += holder.bytes;
      at.blocks += holder.blocks || 0;
    }
    at.own += holder.bytes;
  }
  return root;
}

/* A view per GPU that was used; if none was used, a view per GPU. */
function makeViews() {
  const views = DATA.runs.flatMap(run => run.devices.map(device => makeView(run, device)));
  const used = views.filter(view => view.device.peak || view.ooms.length || view.device.end.holders.length || view.points.length);
  for (const view of views) view.siblings = views.filter(one => one.run === view.run && one !== view);
  used.sort((a, b) => (a.run.summary.recording.rank ?? 0) - (b.run.summary.recording.rank ?? 0) || a.device.ordinal - b.device.ordinal);
  return used.length ? used : views;
}
