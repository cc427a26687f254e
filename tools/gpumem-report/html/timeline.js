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

/* The points in the range, and the next one on either side. */
function pointsWithin(points, [from, to]) {
  const bisect = d3.bisector(point => point.t);
  return points.slice(Math.max(0, bisect.left(points, from) - 1), bisect.right(points, to) + 1);
}

/* Leaves at most two points per half pixel: the highest and the last. */
function thin(points, x) {
  if (points.length < 2 * timeline.width) return points;
  const kept = [];
  let column = null;
  let most = null;
  let last = null;
  for (const point of points) {
    const at = Math.floor(2 * x(point.t));
    if (at !== column) {
      if (most) kept.push(...(most === last ? [most] : most.t < last.t ? [most, last] : [last, most]));
      column = at;
      most = null;
    }
    if (!most || point.live > most.live) most = point;
    last = point;
  }
  if (most) kept.push(most, last);
  return kept;
}

function paintAreas(svg, points, x, y) {
  const { view } = state;
  const outside = view.device.outside;
  const area = (low, high) => d3.area().x(d => x(d.t)).y0(d => y(low(d))).y1(d => y(high(d)));
  const layer = svg.append("g").attr("clip-path", "url(#clip)");
  if (outside && isWholeGpu())
    layer.append("path").attr("class", "area-outside").attr("d", area(d => d.reserved, d => d.reserved + outside)(points));
  layer.append("path").attr("class", "area-cached").attr("d", area(d => d.live, d => d.reserved)(points));
  layer.append("path").attr("class", "area-pending").attr("d", area(d => d.live, d => d.live + d.pending)(points));
  layer.append("path").attr("class", "area-live").attr("d", area(() => 0, d => d.live)(points));
  if (isWholeGpu())
    layer.append("line").attr("class", "line-limit").attr("x1", x.range()[0]).attr("x2", x.range()[1])
      .attr("y1", y(view.limit)).attr("y2", y(view.limit));
}

function paintMarks(svg, x, y) {
  const { view } = state;
  const bottom = y.range()[0];
  const layer = svg.append("g").attr("clip-path", "url(#clip)");
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
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1])).tickSize(-(width - margin.left - margin.right)).tickFormat(""))
    .select(".domain").remove();
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1])).tickFormat(tick => showBytes(tick).replace(".00", "")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(3, width / 110)).tickFormat(showTime).tickSizeOuter(0));
}

function paintTimeline() {
  const { view } = state;
  const box = byId("timeline");
  const { margin } = timeline;
  timeline.width = Math.max(200, box.clientWidth);
  timeline.height = box.clientHeight;
  const most = isWholeGpu() ? Math.max(view.device.total, view.limit, mostBytes(view)) * 1.02 : mostBytes(view) * 1.08 || 1;
  const x = timeline.x = d3.scaleLinear().domain(span()).range([margin.left, timeline.width - margin.right]);
  const y = timeline.y = d3.scaleLinear().domain([0, most]).range([timeline.height - margin.bottom, margin.top]);
  const svg = d3.create("svg").attr("viewBox", [0, 0, timeline.width, timeline.height]).attr("height", timeline.height);
  svg.append("clipPath").attr("id", "clip").append("rect").attr("x", margin.left).attr("y", 0)
    .attr("width", timeline.width - margin.left - margin.right).attr("height", timeline.height);
  const points = thin(pointsWithin(view.points, span()), x);
  paintAxes(svg, x, y);
  paintAreas(svg, points, x, y);
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
  paintLegend();
  for (const button of document.querySelectorAll("[data-do=limit]")) button.setAttribute("aria-pressed", isWholeGpu());
}

function paintCursor() {
  d3.select("#timeline .cursor").attr("x1", timeline.x(state.moment.t)).attr("x2", timeline.x(state.moment.t));
}

function paintLegend() {
  const { view } = state;
  const entry = (name, text) => make("span", {}, make("i", { style: `background: var(--${name})` }), text);
  byId("legend").replaceChildren(
    entry("live", "live"),
    entry("pending", "pending: freed, not yet safe to reuse"), entry("cached", "cached"),
    isWholeGpu() && view.device.outside ? entry("outside", `not tracked: ${showBytes(view.device.outside)}, as last seen`) : "",
    isWholeGpu() ? make("span", {}, `– – limit: ${showBytes(view.limit)}`) : "",
    view.device.peak ? make("span", {}, "◆ peak") : "", view.ooms.length ? make("span", { style: "color: var(--alarm)" }, "▼ out of memory") : "",
    view.rows.length ? make("span", {}, make("i", { style: "background: var(--accent); height: 3px; vertical-align: 3px" }),
      `every moment is known here (${showCount(view.device.moments.n_events)} events)`) : "");
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
  const i = d3.bisector(one => one.t).left(points, t);
  const point = i > 0 && (!points[i] || t - points[i - 1].t < points[i].t - t) ? points[i - 1] : points[i];
  if (!point) return [showTime(t)];
  return [showTime(point.t), `live ${showBytes(point.live)}`,
    `pending ${showBytes(point.pending)}`, `cached ${showBytes(point.reserved - point.live - point.pending)}`,
    `reserved ${showBytes(point.reserved)}`, `${showShare(point.reserved, state.view.limit)} of the limit`];
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
