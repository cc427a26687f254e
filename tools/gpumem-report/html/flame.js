/* The holders as an icicle graph that hangs from the GPU: a name's width is the bytes requested below it. */
const flame = { root: null, focus: null };
const FLAME_ROW = 20;

function layOutFlame() {
  const tree = flameTree(state.view.run, state.moment.holders(), state.view.name, state.libraries);
  const root = d3.hierarchy(tree, node => [...node.children.values()]).sum(node => node.own).sort((a, b) => b.value - a.value);
  flame.root = d3.partition()(root);
  flame.focus = flame.root;
}

const classOf = node => {
  const classes = [];
  if (node.data.name === state.view.cacheName) classes.push("cache");
  else if (node.data.flags & FLAG.what) classes.push("what");
  else if (node.depth && !(node.data.flags & FLAG.library)) classes.push("own");
  if (isFound(node.data.name)) classes.push("found");
  if (flame.focus.ancestors().includes(node) && node !== flame.focus) classes.push("faded");
  return classes.join(" ");
};

const describeFlame = node =>
  [node.data.name, `${showBytes(node.value)} in ${showCount(node.data.blocks)} blocks, ${showShare(node.value, flame.root.value)}`];

function focusFlame(node) {
  flame.focus = node;
  byId("flame-detail").textContent = describeFlame(node).join(": ");
  paintFlame();
}

function paintFlame() {
  const box = byId("flame");
  const width = Math.max(200, box.clientWidth);
  const { focus } = flame;
  const x = d3.scaleLinear().domain([focus.x0, focus.x1]).range([0, width]);
  const shown = flame.root.descendants().filter(node =>
    node.x1 > focus.x0 && node.x0 < focus.x1 && x(node.x1) - x(node.x0) > 0.6 && node.value > 0);
  const height = FLAME_ROW * (1 + (d3.max(shown, node => node.depth) || 0));
  const svg = d3.create("svg").attr("viewBox", [0, 0, width, height]).attr("height", height);
  const groups = svg.selectAll("g").data(shown).enter().append("g").attr("class", classOf)
    .attr("transform", node => `translate(${Math.max(0, x(node.x0))},${node.depth * FLAME_ROW})`);
  const widthOf = node => Math.min(width, x(node.x1)) - Math.max(0, x(node.x0));
  groups.append("rect").attr("height", FLAME_ROW - 1).attr("width", widthOf).attr("rx", 2).attr("data-bytes", node => node.value);
  groups.filter(node => widthOf(node) > 28).append("text").attr("x", 4).attr("y", 14)
    .text(node => fitText(node.depth ? node.data.name : `${node.data.name}: ${showBytes(node.value)}`, widthOf(node) - 8));
  groups.each(function (node) {
    this.addEventListener("click", () => focusFlame(node));
    tips(this, () => describeFlame(node));
  });
  box.replaceChildren(svg.node());
  box.dataset.bytes = flame.root.value;
}

function paintFlameLegend() {
  const nodes = flame.root.descendants();
  const entry = (name, words, is) => nodes.some(is) ? make("span", {}, make("i", { style: `background: var(--${name})` }), words) : "";
  byId("flame-legend").replaceChildren(
    entry("flame-own", "lines of the program", node => node.depth && !(node.data.flags & (FLAG.what | FLAG.library))),
    entry("flame-library", state.libraries ? "frames of libraries" : "what it called", node => node.data.flags & FLAG.library),
    entry("torch", state.view.cacheName, node => node.data.name === state.view.cacheName),
    entry("rest", "no call: contexts, modules", node => node.data.flags & FLAG.what && node.data.name !== state.view.cacheName));
}

/* A character of 11 pixels is 6.3 wide on average. */
function fitText(text, px) {
  const letters = Math.floor(px / 6.3);
  return text.length <= letters ? text : letters < 3 ? "" : `${text.slice(0, letters - 1)}…`;
}

function repaintFlame() {
  layOutFlame();
  byId("flame-detail").textContent = "Click a name to zoom in, the top one to zoom out.";
  paintFlame();
  paintFlameLegend();
}

painters.moment.push(repaintFlame);
painters.search.push(paintFlame);
