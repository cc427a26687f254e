/* Memory over the whole run; a click selects the moment, a drag the range. */
const timeline = { x: null, y: null, width: 0, height: 0, margin: { top: 16, right: 26, bottom: 34, left: 62 } };

const span = () => state.zoom || [0, state.view.endTime];

function mostBytes(view) {
  return d3.max(view.points, point => point.reserved) || 0;
}

/* The whole GPU, if the run used a good part of it. */
function isWholeGpu() {
  if (state.wholeGpu !== null) return state.wholeGpu;
  return mostBytes(state.view) + (state.view.device.outside || 0) > state.view.limit / 4;
}

/* Four to seven ticks at multiples of a power of two, so that they are whole in one unit. */
function byteTicks(most) {
  const step = 2 ** Math.max(0, Math.floor(Math.log2(most / 3.5)));
  return d3.range(0, most * (1 + 1e-9), step);
}

/* The last events before a failure, from which its page opens; of a longer run it is a quarter of the events. */
const CLOSE_EVENTS = 200;

/*
 * A run that failed opens at its last steps: from the last quarter of the events before the failure on, or the last 200
 * of a short run, until a tenth of the time to its first failure after it; growth from its beginning on.  Null: the whole
 * run, if the events do not reach back.
 */
function closeUp(view, moment) {
  if (moment.kind !== "oom") return null;
  const before = view.rows.filter(row => row.t <= moment.t);
  if (before.length === 0) return null;
  const n = before[before.length - 1].events;
  const told = oomView(view.run, moment.oom.number);
  const isGrowth = told && told.verdict.word === "growth";
  const first = before.find(row => isGrowth || row.events >= n - Math.max(CLOSE_EVENTS, n / 4));
  const failed = view.ooms.find(oom => oom.t > first.t && !oom.recovered) || moment;
  return [first.t, Math.min(view.endTime, moment.t + (failed.t - first.t) / 10)];
}

/* The points in the range, and the next one on either side. */
function pointsWithin(points, [from, to]) {
  const bisect = d3.bisector(point => point.t);
  return points.slice(Math.max(0, bisect.left(points, from) - 1), bisect.right(points, to) + 1);
}

/* Columns of so many pixels with several waves would be a comb of hairlines: they show their highest moment. */
const COLUMN = 16;

/* How often `live` falls after it rose, by at least a twentieth of the most. */
function countWaves(points, most) {
  let waves = 0;
  let low = Infinity;
  let high = -Infinity;
  for (const { live } of points) {
    low = Math.min(low, live);
    if (live - low > most / 20) high = Math.max(high, live);
    if (high - live > most / 20) {
      waves++;
      low = live;
      high = -Infinity;
    }
  }
  return waves;
}

/*
 * For each pixel its highest point, from its left edge, and its last one, from its right edge: a short peak is a pixel
 * wide.  A dense column is as wide as it is, but for one with a failure.
 */
function thin(points, x) {
  const kept = [];
  const most = d3.max(points, point => point.live) || 0;
  const failed = new Set(state.view.ooms.map(oom => Math.floor(x(oom.t) / COLUMN)));
  const keep = (some, from, to) =>
    kept.push({ ...some.reduce((best, point) => point.live > best.live ? point : best), px: from }, { ...some[some.length - 1], px: to });
  const columns = groupBy(points, point => Math.floor(x(point.t) / COLUMN));
  timeline.isDense = false;
  for (const column of columns) {
    const number = Math.floor(x(column[0].t) / COLUMN);
    if (!failed.has(number) && countWaves(column, most) > 1) {
      timeline.isDense = true;
      keep(column, number * COLUMN, (number + 1) * COLUMN);
    } else {
      for (const pixel of groupBy(column, point => Math.floor(x(point.t)))) {
        const px = Math.floor(x(pixel[0].t));
        keep(pixel, px, px + 1);
      }
    }
  }
  return kept;
}

/* From the bottom: what stays from step to step first. */
const LAYERS = [0, 2, 1, 3, 4, 5, 6, 7];

/*
 * What is reserved and not live, from the bottom.  Where `reserved` is only sampled it is one hatched layer, because the
 * samples do not tell whose cache it is.
 */
const IDLE = [
  { name: "torch", from: d => d.live, bytes: d => d.idle },
  { name: "pending", from: d => d.live + d.idle, bytes: d => d.pending },
  { name: "cached", from: d => d.live + d.idle + d.pending, bytes: d => d.isSampled ? 0 : cachedOf(d) },
  { name: "sampled", from: d => d.live + d.idle + d.pending, bytes: d => d.isSampled ? cachedOf(d) : 0 },
];
const cachedOf = point => point.reserved - point.live - point.idle - point.pending;

function addHatch(svg, name, step) {
  svg.append("pattern").attr("id", `hatch-${name}`).attr("width", step).attr("height", step).attr("patternUnits", "userSpaceOnUse")
    .attr("patternTransform", "rotate(45)").append("rect").attr("class", `hatch-${name}`).attr("width", step / 3).attr("height", step);
}

const hasLayers = () => state.view.words.length > 0 && state.view.levels.length > 0;
const layersUsed = view => LAYERS.filter(i => view.levels.some(level => level.purposes[i] > 0));

function paintAreas(svg, points, y) {
  const { view } = state;
  const outside = view.device.outside;
  const area = (low, high) => d3.area().curve(d3.curveStepAfter).x(d => d.px).y0(d => y(low(d))).y1(d => y(high(d)));
  const layer = svg.append("g").attr("clip-path", "url(#clip)");
  const paint = (name, low, high, some = points) => layer.append("path").attr("class", name).attr("d", area(low, high)(some));
  addHatch(svg, "outside", 6);
  addHatch(svg, "sampled", 4);
  if (outside && isWholeGpu()) paint("area-outside", d => d.reserved, d => d.reserved + outside);
  for (const { name, from, bytes } of IDLE) paint(`area-${name}`, d => from(d), d => from(d) + bytes(d));
  paint(hasLayers() ? "purpose-none" : "area-live", () => 0, d => d.live);
  if (hasLayers()) paintLayers(paint, points.filter(point => point.purposes));
  if (isWholeGpu())
    layer.append("line").attr("class", "line-limit").attr("x1", timeline.margin.left).attr("x2", timeline.width - timeline.margin.right)
      .attr("y1", y(view.limit)).attr("y2", y(view.limit));
}

/* What is live for none of the purposes, such as contexts, is above them. */
function paintLayers(paint, points) {
  const order = layersUsed(state.view);
  const below = (point, n) => Math.min(point.live, order.slice(0, n).reduce((sum, i) => sum + point.purposes[i], 0));
  order.forEach((i, n) => paint(`purpose-${i}`, d => below(d, n), d => below(d, n + 1), points));
  paint("area-rest", d => below(d, order.length), d => d.live, points);
}

const IDLE_WIDTH = 64;
const MOST_CUTS = 5;

/*
 * The longest idle stretches, of those that take more than a third of what is left of the range, are drawn short.  Times
 * increase along the axis as ever: it is linear between knots.
 */
function idleWithin([from, to]) {
  if (state.allTime) return [];
  const cut = [];
  let busy = to - from;
  for (const [idleFrom, idleTo] of state.view.idle) {
    const gap = [Math.max(from, idleFrom), Math.min(to, idleTo)];
    const length = gap[1] - gap[0];
    if (length > busy / 3 && length < busy && cut.length < MOST_CUTS) { cut.push(gap); busy -= length; }
  }
  const margin = busy / 50;
  return cut.map(gap => [gap[0] + (gap[0] > from ? margin : 0), gap[1] - (gap[1] < to ? margin : 0)])
    .filter(gap => gap[1] - gap[0] > margin).sort((a, b) => a[0] - b[0]);
}

function makeTimeScale(range, left, right) {
  const gaps = timeline.gaps = idleWithin(range);
  const busy = range[1] - range[0] - gaps.reduce((sum, gap) => sum + gap[1] - gap[0], 0);
  const perTime = (right - left - gaps.length * IDLE_WIDTH) / busy;
  const knots = [range[0]];
  const places = [left];
  const knot = (t, px) => { if (t > knots[knots.length - 1]) { knots.push(t); places.push(px); } };
  const place = t => places[places.length - 1] + (t - knots[knots.length - 1]) * perTime;
  for (const [from, to] of gaps) {
    knot(from, place(from));
    knot(to, places[places.length - 1] + IDLE_WIDTH);
  }
  knot(range[1], right);
  return d3.scaleLinear().domain(knots).range(places);
}

/* Steps between ticks that are whole in hours, minutes and seconds. */
const CLOCK_STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400].map(s => s * 1e9);

/* The least whole step of which so many fit into the time. */
function tickStep(length, most) {
  const least = length / Math.max(1, most);
  return (least > 5e8 && CLOCK_STEPS.find(step => step >= least)) || d3.tickIncrement(0, length, most) || 1;
}

/* Whole times in each busy part, as far apart as their words need, and how to say them: all in one unit. */
function timeTicks(x) {
  const knots = x.domain();
  const ticks = [];
  let least = Infinity;
  for (let i = 1; i < knots.length; i++) {
    const width = x(knots[i]) - x(knots[i - 1]);
    if (timeline.gaps.some(gap => gap[0] === knots[i - 1]) || width < 60) continue;
    let step = tickStep(knots[i] - knots[i - 1], width / 110);
    if (step < 0) step = -1 / step;
    for (let n = Math.ceil(knots[i - 1] / step); n * step <= knots[i]; n++) {
      const t = n * step;
      if ((ticks.length && x(t) - x(ticks[ticks.length - 1]) <= 70) || timeline.gaps.some(gap => x(t) > x(gap[0]) - 36 && x(t) < x(gap[1]) + 36)) continue;
      ticks.push(t);
      least = Math.min(least, step);
    }
  }
  return { ticks, show: axisTime(knots[knots.length - 1], least) };
}

/* The words for times up to `last` that differ by `step`: in ms, in s, or as on a clock. */
function axisTime(last, step) {
  const digits = unit => Math.min(9, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)));
  const pad = n => String(n).padStart(2, "0");
  if (last < 1e9) return t => `${(t / 1e6).toFixed(digits(1e6))} ms`;
  if (last < 120e9) return t => `${(t / 1e9).toFixed(digits(1e9))} s`;
  return t => {
    const n = digits(1e9);
    const s = (t / 1e9).toFixed(n);
    const whole = Math.floor(s);
    return `${Math.floor(whole / 3600)}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}${n ? s.slice(-n - 1) : ""}`;
  };
}

function paintGaps(svg, x, y) {
  for (const [from, to] of timeline.gaps) {
    const group = svg.append("g").attr("class", "gap");
    group.append("rect").attr("x", x(from)).attr("width", x(to) - x(from)).attr("y", y.range()[1]).attr("height", y.range()[0] - y.range()[1]);
    group.append("text").attr("x", (x(from) + x(to)) / 2).attr("y", y.range()[0] + 20).attr("text-anchor", "middle").text(`${showDuration(to - from)} later`);
    group.append("path").attr("d", `M${x(from) + 2},${y.range()[0] + 6}H${x(to) - 2}`);
  }
}

function paintMarks(svg, x, y) {
  const { view } = state;
  const bottom = y.range()[0];
  const layer = svg.append("g").attr("clip-path", "url(#clip)");
  const others = view.siblings.flatMap(one => one.ooms);
  for (const oom of others)
    layer.append("line").attr("class", "mark-other").attr("x1", x(oom.t)).attr("x2", x(oom.t)).attr("y1", y.range()[1]).attr("y2", bottom);
  for (const oom of view.ooms) {
    layer.append("line").attr("class", oom.recovered ? "mark-oom recovered" : "mark-oom")
      .attr("x1", x(oom.t)).attr("x2", x(oom.t)).attr("y1", y.range()[1]).attr("y2", bottom);
    layer.append("path").attr("class", "mark-oom-head").attr("d", d3.symbol().type(d3.symbolTriangle).size(50)())
      .attr("transform", `translate(${x(oom.t)},${y.range()[1] + 5}) rotate(180)`);
  }
  if (view.device.peak)
    layer.append("path").attr("class", "mark-peak").attr("d", d3.symbol().type(d3.symbolDiamond).size(46)())
      .attr("transform", `translate(${x(view.device.peak.t)},${y(view.device.peak.live)})`);
}

/* Below the axis: the moments with known holders, and the ranges named by the program. */
function paintLane(svg, x, y) {
  const { view } = state;
  const layer = svg.append("g").attr("clip-path", "url(#clip)");
  const top = y.range()[0] + 20;
  if (view.rows.length)
    layer.append("rect").attr("class", "known").attr("x", x(view.rows[0].t)).attr("y", top + 11).attr("height", 2)
      .attr("width", Math.max(2, x(view.rows[view.rows.length - 1].t) - x(view.rows[0].t)));
  const hue = d3.scaleOrdinal(d3.schemeTableau10);
  for (let i = 0; i < view.rows.length;) {
    let next = i;
    while (next < view.rows.length && view.rows[next].tag === view.rows[i].tag) next++;
    const name = view.run.tags[view.rows[i].tag];
    const end = next < view.rows.length ? view.rows[next].t : view.rows[view.rows.length - 1].t;
    if (name) {
      const box = layer.append("rect").attr("class", "tag").attr("x", x(view.rows[i].t)).attr("y", top).attr("height", 10)
        .attr("width", Math.max(1, x(end) - x(view.rows[i].t))).attr("fill", hue(name.replace(/\d+/g, "")));
      tips(box.node(), () => [name]);
    }
    i = next;
  }
}

function paintAxes(svg, x, y) {
  const { margin, height, width } = timeline;
  const times = timeTicks(x);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1])).tickSize(-(width - margin.left - margin.right)).tickFormat(""))
    .select(".domain").remove();
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1])).tickFormat(tick => showBytes(tick).replace(".00", "")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickValues(times.ticks).tickFormat(times.show).tickSizeOuter(0));
}

function paintTimeline() {
  const { view } = state;
  const box = byId("timeline");
  const { margin } = timeline;
  timeline.width = Math.max(200, box.clientWidth);
  timeline.height = box.clientHeight;
  const most = isWholeGpu() ? Math.max(view.device.total, view.limit, mostBytes(view)) * 1.02 : mostBytes(view) * 1.08 || 1;
  const x = timeline.x = makeTimeScale(span(), margin.left, timeline.width - margin.right);
  const y = timeline.y = d3.scaleLinear().domain([0, most]).range([timeline.height - margin.bottom, margin.top]);
  const svg = d3.create("svg").attr("viewBox", [0, 0, timeline.width, timeline.height]).attr("height", timeline.height);
  svg.append("clipPath").attr("id", "clip").append("rect").attr("x", margin.left).attr("y", 0)
    .attr("width", timeline.width - margin.left - margin.right).attr("height", timeline.height);
  const points = thin(pointsWithin(view.points, span()), x);
  paintAxes(svg, x, y);
  paintAreas(svg, points, y);
  paintGaps(svg, x, y);
  paintMarks(svg, x, y);
  paintLane(svg, x, y);
  svg.append("line").attr("class", "cursor").attr("y1", margin.top).attr("y2", y.range()[0]).attr("clip-path", "url(#clip)");
  svg.append("line").attr("class", "hover").attr("y1", margin.top).attr("y2", y.range()[0]).attr("visibility", "hidden");
  svg.append("rect").attr("class", "selection").attr("y", margin.top).attr("height", y.range()[0] - margin.top).attr("width", 0);
  box.replaceChildren(svg.node());
  box.dataset.points = points.length;
  box.dataset.highest = d3.max(points, point => point.live) || 0;
  box.dataset.pending = d3.max(points, point => point.pending) || 0;
  paintCursor();
  paintLegend(points);
  paintRange();
  for (const button of document.querySelectorAll("[data-do=limit]")) button.setAttribute("aria-pressed", isWholeGpu());
  const idle = document.querySelector("[data-do=idle]");
  idle.hidden = timeline.gaps.length === 0 && !state.allTime;
  idle.setAttribute("aria-pressed", !state.allTime);
}

function paintCursor() {
  d3.select("#timeline .cursor").attr("x1", timeline.x(state.moment.t)).attr("x2", timeline.x(state.moment.t));
}

/* Whether memory whose purposes are not known takes some of the picture. */
function isUnknownSeen({ points, levels }) {
  const first = points.find(point => point.live && !point.purposes);
  return first && timeline.x(levels[0].t) - timeline.x(Math.max(first.t, span()[0])) > 8;
}

/* What part of the run is drawn. */
function paintRange() {
  const [from, to] = span();
  byId("range").textContent = state.zoom ? `${showTime(from)} to ${showTime(to)} of ${showTime(state.view.endTime)}` : "the whole run";
  document.querySelector("[data-do=reset]").setAttribute("aria-pressed", !state.zoom);
}

/* `points` are those drawn. */
function paintLegend(points) {
  const { view } = state;
  const entry = (name, text) => make("span", {}, make("i", { class: `swatch-${name}`, style: `background: var(--${name})` }), text);
  const hatched = (name, text) => make("span", {}, make("i", { class: `hatched-${name}` }), text);
  const isSeen = name => points.some(IDLE.find(layer => layer.name === name).bytes);
  byId("legend").replaceChildren(...[
    ...(hasLayers() ? layersUsed(view).map(i => entry(`purpose-${i}`, view.words[i])) : []),
    hasLayers() ? entry("rest", "live otherwise: contexts, modules, rounding") : "",
    !hasLayers() || isUnknownSeen(view) ? (hasLayers() ? entry("purpose-none", "live, what for is not known") : entry("live", "live")) : "",
    isSeen("torch") ? entry("torch", view.cacheName) : "",
    isSeen("pending") ? entry("pending", "pending: freed, not yet safe to reuse, sampled") : "",
    isSeen("cached") ? entry("cached", OUR_CACHE) : "",
    isSeen("sampled") ? hatched("sampled", `reserved: sampled, the most of each ${showDuration(view.device.history.interval)}`) : "",
    isWholeGpu() && view.device.outside ? hatched("outside", `not tracked: ${showBytes(view.device.outside)}, as last seen`) : "",
    isWholeGpu() ? make("span", {}, `– – limit: ${showBytes(view.limit)}`) : "",
    view.device.peak ? make("span", {}, "◆ peak") : "", view.ooms.length ? make("span", { style: "color: var(--alarm)" }, "▼ out of memory") : "",
    view.siblings.some(one => one.ooms.length) ? make("span", {}, "┆ out of memory on another GPU") : "",
    view.rows.length ? make("span", {}, make("i", { style: "background: var(--accent); height: 3px; vertical-align: 3px" }),
      `every event is known here (${showCount(view.device.moments.n_events)} events)`) : "",
    timeline.isDense ? make("span", {}, "steps too short to draw: the highest moment of each column") : "",
    timeline.gaps.length ? make("span", {}, make("i", { class: "gap-swatch" }), "nothing happened, drawn short") : ""].filter(one => one));
}

/* The moment nearest to a position; a mark a few pixels away is preferred. */
function momentAt(px) {
  const { view } = state;
  const { x } = timeline;
  const t = x.invert(px);
  const marks = view.moments.filter(moment => moment.kind !== "event" && Math.abs(x(moment.t) - px) < 7);
  const near = marks.length ? marks : view.moments;
  return near.reduce((best, moment) => Math.abs(moment.t - t) < Math.abs(best.t - t) ? moment : best, near[0]);
}

function hoverLines(px) {
  const t = timeline.x.invert(px);
  const { points } = state.view;
  const point = points[d3.bisector(one => one.t).right(points, t) - 1];
  if (!point) return [showTime(t)];
  const purposes = hasLayers() && point.purposes ? LAYERS.filter(i => point.purposes[i]).reverse() : [];
  return [showTime(t), `live ${showBytes(point.live)}`, ...purposes.map(i => `  ${state.view.words[i]} ${showBytes(point.purposes[i])}`),
    ...(point.idle ? [`${state.view.cacheName} ${showBytes(point.idle)}`] : []), `pending ${showBytes(point.pending)}`,
    point.isSampled ? "" : `${OUR_CACHE} ${showBytes(cachedOf(point))}`, `reserved ${showBytes(point.reserved)}${point.isSampled ? ", sampled" : ""}`, `${showShare(point.reserved, state.view.limit)} of the limit`].filter(line => line);
}

function setZoom(range) {
  const least = Math.max(1e3, state.view.endTime / 1e6);
  if (range) {
    const width = Math.max(least, range[1] - range[0]);
    const from = Math.max(0, Math.min(range[0], state.view.endTime - width));
    state.zoom = width >= state.view.endTime ? null : [from, from + width];
  } else {
    state.zoom = null;
  }
  paintTimeline();
}

function zoomBy(factor) {
  const [from, to] = span();
  const t = state.moment.t >= from && state.moment.t <= to ? state.moment.t : (from + to) / 2;
  setZoom([t - (t - from) * factor, t + (to - t) * factor]);
}

function listenToTimeline() {
  const box = byId("timeline");
  let start = null;
  const place = event => event.clientX - box.getBoundingClientRect().left;
  const within = px => Math.max(timeline.margin.left, Math.min(timeline.width - timeline.margin.right, px));
  box.addEventListener("pointerdown", event => { if (event.button === 0) start = within(place(event)); });
  box.addEventListener("pointermove", event => {
    const px = within(place(event));
    d3.select("#timeline .hover").attr("visibility", "visible").attr("x1", px).attr("x2", px);
    if (!event.target.classList.contains("tag")) tip(event, ...hoverLines(px));
    if (start !== null && event.buttons)
      d3.select("#timeline .selection").attr("x", Math.min(start, px)).attr("width", Math.abs(px - start));
  });
  box.addEventListener("pointerleave", event => {
    tip(event);
    start = null;
    d3.select("#timeline .hover").attr("visibility", "hidden");
    d3.select("#timeline .selection").attr("width", 0);
  });
  box.addEventListener("pointerup", event => {
    const px = within(place(event));
    if (start === null) return;
    if (Math.abs(px - start) > 8) setZoom([timeline.x.invert(Math.min(start, px)), timeline.x.invert(Math.max(start, px))]);
    else selectMoment(momentAt(px));
    start = null;
  });
  box.addEventListener("dblclick", () => setZoom(null));
}

painters.view.push(paintTimeline);
painters.moment.push(paintCursor);
