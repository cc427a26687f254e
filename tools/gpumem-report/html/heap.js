/* The segments at a moment, drawn end to end in address order, on several lines. */
const CELL = { unknown: 0, free: 1, live: 2, pending: 3, torch: 4, mixed: 5 };
const CELL_COLOURS = ["unknown", "cached", "live", "pending", "torch", "mixed"];
const HEAP_ROW = 18;
const HEAP_AT = { peak: "at the peak", oom: "at the failure", end: "at the end" };
const heap = { shown: null, names: null, cells: [], total: 0, perRow: 0, width: 0 };

/* The heap of the selected moment; of one without its own, the nearest in time. */
function heapOf(view, moment) {
  const { heaps } = view.device;
  const own = heaps.find(one => one.kind === moment.kind && one.t === moment.t);
  return own || heaps.reduce((best, one) => Math.abs(one.t - moment.t) < Math.abs(best.t - moment.t) ? one : best);
}

/* Reads the cells; the position of a cell counts from the first segment's start, without the gaps between segments. */
function readHeap(shown) {
  const cells = [];
  let at = 0;
  let i = 0;
  shown.segments.forEach((segment, number) => {
    for (let offset = 0; i < segment.end; i++) {
      const [size, requested, kind, stack, tag] = shown.cells.slice(5 * i, 5 * i + 5);
      cells.push({ at, size, requested, kind, stack, tag, segment, number, offset });
      at += size;
      offset += size;
    }
  });
  Object.assign(heap, { shown, names: null, cells, total: at });
}

function paintHeap() {
  const { view } = state;
  const shown = heapOf(view, state.moment);
  if (shown === heap.shown) return;
  const { segments } = shown;
  const box = byId("heap");
  readHeap(shown);
  const when = `${HEAP_AT[shown.kind]}, ${showTime(shown.t)}`;
  byId("heap-title").textContent = segments.length ? `${showCount(segments.length)} segment${segments.length > 1 ? "s" : ""}, ${showBytes(heap.total)}, ${when}` : `No segments ${when}`;
  paintHeapLegend(view);
  state.segment = null;
  byId("segment").replaceChildren();
  if (segments.length === 0) {
    box.replaceChildren();
    byId("segments").replaceChildren();
    return;
  }
  const canvas = make("canvas");
  box.replaceChildren(canvas);
  drawHeap(canvas);
  canvas.addEventListener("pointermove", event => tip(event, ...describeCell(cellAt(event, canvas))));
  canvas.addEventListener("pointerleave", event => tip(event));
  canvas.addEventListener("click", event => {
    const cell = cellAt(event, canvas);
    if (cell) selectSegment(cell.number);
  });
  paintSegments();
}

function drawHeap(canvas) {
  const rows = Math.max(1, Math.min(12, Math.ceil(heap.shown.segments.length / 2)));
  const scale = devicePixelRatio || 1;
  heap.width = byId("heap").clientWidth;
  heap.perRow = heap.total / rows;
  canvas.width = heap.width * scale;
  canvas.height = rows * HEAP_ROW * scale;
  canvas.style.height = `${rows * HEAP_ROW}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const colours = CELL_COLOURS.map(colour);
  const x = bytes => bytes / heap.perRow * heap.width;
  for (const cell of heap.cells)
    for (const piece of pieces(cell)) {
      context.fillStyle = colours[cell.kind];
      context.fillRect(x(piece.from), piece.row * HEAP_ROW + 1, Math.max(0.4, x(piece.size)), HEAP_ROW - 2);
    }
  drawEdges(context, x);
}

/* The parts of a cell on the lines that it covers. */
function pieces(cell) {
  const parts = [];
  for (let done = 0; done < cell.size;) {
    const row = Math.floor((cell.at + done) / heap.perRow + 1e-9);
    const from = Math.max(0, cell.at + done - row * heap.perRow);
    const size = Math.min(cell.size - done, heap.perRow - from);
    if (size <= 0) break;
    parts.push({ row, from, size });
    done += size;
  }
  return parts;
}

/* Between what is wide enough to be seen beside its edge. */
function drawEdges(context, x) {
  context.fillStyle = colour("card");
  heap.cells.forEach((cell, i) => {
    const piece = pieces(cell)[0];
    const isFirst = i === 0 || heap.cells[i - 1].number !== cell.number;
    if (piece && isFirst && x(cell.segment.size) > 8) context.fillRect(x(piece.from) - 1, piece.row * HEAP_ROW, 2, HEAP_ROW);
    else if (piece && x(cell.size) > 8) context.fillRect(x(piece.from) - 0.5, piece.row * HEAP_ROW + 1, 1, HEAP_ROW - 2);
  });
  if (state.segment === null) return;
  context.fillStyle = colour("text");
  for (const cell of heap.cells.filter(one => one.number === state.segment))
    for (const piece of pieces(cell)) {
      context.fillRect(x(piece.from), piece.row * HEAP_ROW, x(piece.size), 2);
      context.fillRect(x(piece.from), (piece.row + 1) * HEAP_ROW - 2, x(piece.size), 2);
    }
}

function cellAt(event, canvas) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top) / HEAP_ROW);
  const at = (row + (event.clientX - box.left) / box.width) * heap.perRow;
  const i = d3.bisector(cell => cell.at).right(heap.cells, at) - 1;
  return heap.cells[i];
}

/* The name from the table of holders of that moment, without wrappers. */
function siteName(stack) {
  const { view } = state;
  if (!heap.names) {
    const moment = view.moments.find(one => one.kind === heap.shown.kind && one.t === heap.shown.t);
    const rows = moment ? siteRows(view.run, moment.holders()) : [];
    heap.names = new Map(rows.flatMap(row => row.stacks.map(holder => [holder.stack, row.where])));
  }
  return heap.names.get(stack) || view.run.stacks[stack][0][0];
}

/* Caches have one name on the whole page. */
const cellWords = (view, kind) => kind === CELL.torch ? view.cacheName : kind === CELL.free ? OUR_CACHE : view.device.cell_words[kind];

function describeCell(cell) {
  if (!cell) return [];
  const { run } = state.view;
  const lines = [`${cellWords(state.view, cell.kind)}: ${showBytes(cell.size)}`, `in segment ${cell.segment.address}, at ${showBytes(cell.offset)}`];
  if (cell.kind === CELL.live) lines.splice(1, 0, siteName(cell.stack));
  if (cell.kind === CELL.live && run.tags[cell.tag]) lines.push(run.tags[cell.tag]);
  return lines;
}

/* Idle bytes of a segment that cannot be given back, because live blocks pin the segment. */
const wasted = segment => segment.n_pins ? segment.bytes[CELL.free] + segment.bytes[CELL.pending] + segment.bytes[CELL.torch] : 0;

function paintHeapLegend(view) {
  const used = new Set(heap.cells.map(cell => cell.kind));
  byId("heap-legend").replaceChildren(...view.device.cell_words.flatMap((words, kind) =>
    used.has(kind) ? [make("span", {}, make("i", { style: `background: var(--${CELL_COLOURS[kind]})` }), cellWords(view, kind))] : []));
}

function pinsText(segment) {
  if (segment.n_pins === 0 && segment.bytes[CELL.torch]) return "no tensor: torch.cuda.empty_cache() gives it back";
  if (segment.n_pins === 0) return segment.bytes[CELL.pending] ? "nothing, but work of the GPU may still use it" : "nothing: it can go back to the driver";
  const names = [];
  for (let i = 0; i < segment.pins.length && i < 6; i += 3)
    names.push(`${siteName(segment.pins[i])} (${showBytes(segment.pins[i + 1])} in ${showCount(segment.pins[i + 2])})`);
  return `${showCount(segment.n_pins)} block${segment.n_pins === 1 ? "" : "s"}: ${names.join("; ")}${segment.pins.length > 6 ? "; ..." : ""}`;
}

const idleBytes = segment => segment.bytes[CELL.free] + segment.bytes[CELL.pending] + segment.bytes[CELL.torch];

function segmentRow({ segment, number }) {
  return make("tr", { class: `opens ${number === state.segment ? "selected" : ""}`, tabindex: 0, "data-number": number, onclick: () => selectSegment(number) },
    bytesCell(segment.size), bytesCell(segment.bytes[CELL.live]), bytesCell(idleBytes(segment)),
    make("td", { class: "optional address" }, segment.address), make("td", {}, pinsText(segment)));
}

/* One row for all segments that nothing pins, for the same reason; it selects the largest. */
function idleRow(list) {
  const sum = of => list.reduce((total, { segment }) => total + of(segment), 0);
  return make("tr", { class: "opens", tabindex: 0, onclick: () => selectSegment(list[0].number) }, bytesCell(sum(segment => segment.size)), bytesCell(sum(segment => segment.bytes[CELL.live])), bytesCell(sum(idleBytes)),
    make("td", { class: "optional" }, `${showCount(list.length)} segments`), make("td", {}, pinsText(list[0].segment)));
}

/* The table of segments, those with most wasted bytes first. */
function paintSegments() {
  const { segments } = heap.shown;
  const order = segments.map((segment, number) => ({ segment, number }))
    .sort((a, b) => wasted(b.segment) - wasted(a.segment) || b.segment.size - a.segment.size);
  const idle = groupBy(order.filter(({ segment }) => segment.n_pins === 0), ({ segment }) => pinsText(segment)).filter(list => list.length > 1);
  const single = order.filter(one => !idle.some(list => list.includes(one)));
  byId("segments").replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, make("th", { class: "number" }, "size"), make("th", { class: "number" }, "live"), make("th", { class: "number" }, "idle"), make("th", { class: "optional" }, "address"), make("th", {}, "what pins it"))),
    make("tbody", {}, ...idle.map(idleRow), ...single.slice(0, 30).map(segmentRow))));
  if (single.length > 30) byId("segments").append(make("p", { class: "dim" }, `and ${showCount(single.length - 30)} more segments`));
}

function selectSegment(number) {
  const segment = heap.shown.segments[number];
  state.segment = number;
  byId("segment").replaceChildren(
    make("strong", {}, `${segment.address}: ${showBytes(segment.size)} of ${segment.kind}`),
    ` taken ${segment.t === null ? "" : `${showTime(segment.t)} after the start `}by ${siteName(segment.stack)}. `, make("span", { class: "dim" }, "Pinned by "), pinsText(segment) || "itself");
  drawHeap(byId("heap").firstChild);
  for (const row of byId("segments").querySelectorAll("tr[data-number]")) row.classList.toggle("selected", Number(row.dataset.number) === number);
}

painters.moment.push(paintHeap);
