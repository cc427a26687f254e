/* Shared by all views: the data, elements, numbers formatted as in gpumem-report, and the selection. */
const DATA = JSON.parse(document.getElementById("data").textContent);

const byId = id => document.getElementById(id);

/* Makes an element.  Attributes that begin with `on` are listeners; a child that is a string becomes text, not HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function showBytes(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  if (Math.abs(bytes) < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  let value = bytes / 1024;
  while (Math.abs(value) >= 1024 && i < units.length - 1) { value /= 1024; i++; }
  return `${value.toFixed(2)} ${units[i]}`;
}

/* The name of our own cached memory. */
const OUR_CACHE = "gpucache's cache, free";

const showCount = n => n === null || n === undefined ? "" : n.toLocaleString("en-US");
const showExact = bytes => bytes === null || bytes === undefined ? "" : `${showCount(bytes)} B`;
const showShare = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "";

/* In nanoseconds after the start. */
function showTime(ns) {
  const s = ns / 1e9;
  if (s < 1) return `${(1e3 * s).toFixed(s < 0.1 ? 2 : 1)} ms`;
  if (s < 120) return `${s.toFixed(3)} s`;
  const pad = n => String(Math.floor(n)).padStart(2, "0");
  if (s < 7200) return `${Math.floor(s / 60)} min ${pad(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${pad(s % 3600 / 60)} min`;
}

/* A length of time, in as few letters as are telling. */
function showDuration(ns) {
  const s = ns / 1e9;
  const units = [[3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "us"]];
  const [size, unit] = units.find(([least]) => s >= least) || units[4];
  const value = s / size;
  return `${value < 10 ? value.toFixed(1).replace(".0", "") : Math.round(value)} ${unit}`;
}

/* A cell of bytes, with the exact number as tooltip and as data attribute. */
const bytesCell = (bytes, tag = "td") =>
  make(tag, { class: "number", "data-bytes": bytes, title: showExact(bytes) }, showBytes(bytes));

/* The text as nodes, with the first match of the search in <mark>. */
function marked(text) {
  const at = state.search ? text.toLowerCase().indexOf(state.search) : -1;
  if (at < 0) return [text];
  return [text.slice(0, at), make("mark", {}, text.slice(at, at + state.search.length)), text.slice(at + state.search.length)];
}

const isFound = text => state.search !== "" && text.toLowerCase().includes(state.search);

const state = {
  view: null,      /* of model.js */
  moment: null,    /* one of view.moments */
  search: "",
  libraries: false,
  allTime: false,  /* draw idle time as long as it was */
  wholeGpu: null,  /* null: automatic */
  zoom: null,      /* [from, to] in ns; null: the whole run */
  segment: null,
};

/* The functions to call when that part of the selection changes. */
const painters = { view: [], moment: [], search: [] };

function repaint(what) {
  for (const painter of painters[what]) painter();
}

/* Shows these lines next to the pointer; without lines, hides the box. */
function tip(event, ...lines) {
  const box = byId("tip");
  box.hidden = lines.length === 0;
  if (box.hidden) return;
  box.replaceChildren(...lines.map(line => make("div", {}, line)));
  const width = box.offsetWidth;
  const height = box.offsetHeight;
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - 12 - width : event.clientX + 16;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - 12 - height : event.clientY + 16;
  box.style.left = `${Math.max(4, x)}px`;
  box.style.top = `${Math.max(4, y)}px`;
}

/* Shows what lines() returns while the pointer is over the element. */
function tips(element, lines) {
  element.addEventListener("pointermove", event => tip(event, ...lines(event)));
  element.addEventListener("pointerleave", event => tip(event));
}

/* Colours are in the style sheet. */
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
