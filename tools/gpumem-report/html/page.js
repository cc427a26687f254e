/* Puts everything together: selection, keys, dark and light. */
const views = makeViews();
views.forEach((view, i) => { view.index = i; });

function selectMoment(moment) {
  state.moment = moment;
  const [from, to] = span();
  if (moment.t < from || moment.t > to) setZoom([moment.t - (to - from) / 2, moment.t + (to - from) / 2]);
  repaint("moment");
}

/* The moment shown first: the failure that ended the program, else the peak, else the end. */
function firstMoment(view) {
  const fatal = view.moments.filter(moment => moment.kind === "oom" && !moment.oom.recovered);
  return fatal[fatal.length - 1] || view.moments.find(moment => moment.kind === "peak") || view.moments[view.moments.length - 1];
}

function selectView(view) {
  state.view = view;
  state.moment = firstMoment(view);
  state.zoom = closeUp(view, state.moment);
  const { recording } = view.run.summary;
  const program = programName(recording);
  byId("title").textContent = `${program}, pid ${recording.pid}${hasRank(recording) ? `, rank ${recording.rank}` : ""}`;
  byId("subtitle").textContent = [view.summary && view.summary.name, showBytes(view.device.total), recording.host, recording.state, recording.job && `job ${recording.job}`, `started ${recording.started.replace("T", " ").replace("Z", " UTC")}`].filter(text => text).join(" · ");
  byId("command").textContent = recording.command || recording.exe || "";
  document.title = `GPU memory of ${program}`;
  byId("views").replaceChildren(...(views.length < 2 ? [] : views.map(one => make("button", {
    type: "button", "aria-pressed": one === view, class: one.ooms.some(oom => !oom.recovered) ? "alarm" : "", onclick: () => selectView(one),
  }, one.name))));
  repaint("view");
  repaint("moment");
}

function step(n) {
  const { moments } = state.view;
  selectMoment(moments[Math.max(0, Math.min(moments.length - 1, state.moment.index + n))]);
}

/* The next moment of that kind, after the last one the first. */
function nextOf(kind) {
  const some = state.view.moments.filter(moment => moment.kind === kind);
  if (some.length) selectMoment(some.find(moment => moment.index > state.moment.index) || some[0]);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (state.view) drawHeapAgain();
}

const drawHeapAgain = () => { if (byId("heap").firstChild) drawHeap(byId("heap").firstChild); };
const otherTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function toggleLibraries() {
  state.libraries = byId("libraries").checked;
  repaintFlame();
}

function toggleLimit() {
  state.wholeGpu = !isWholeGpu();
  paintTimeline();
}

function toggleIdle() {
  state.allTime = !state.allTime;
  paintTimeline();
}

const ACTIONS = { idle: toggleIdle, "zoom-in": () => zoomBy(0.5), "zoom-out": () => zoomBy(2), reset: () => setZoom(null), limit: toggleLimit };

const KEYS = {
  ArrowLeft: event => step(event.shiftKey ? -10 : -1), ArrowRight: event => step(event.shiftKey ? 10 : 1),
  p: () => nextOf("peak"), o: () => nextOf("oom"), e: () => nextOf("end"),
  "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2), 0: () => setZoom(null), l: toggleLimit, i: toggleIdle,
  "[": () => selectView(views[(state.view.index + views.length - 1) % views.length]),
  "]": () => selectView(views[(state.view.index + 1) % views.length]),
  f: () => { byId("libraries").checked = !byId("libraries").checked; toggleLibraries(); },
  "/": () => byId("search").focus(), d: otherTheme, "?": () => byId("help").showModal(),
};

function listen() {
  listenToTimeline();
  byId("search").addEventListener("input", event => { state.search = event.target.value.trim().toLowerCase(); repaint("search"); });
  byId("search").addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    event.target.value = state.search = "";
    event.target.blur();
    repaint("search");
  });
  byId("libraries").addEventListener("change", toggleLibraries);
  byId("theme").addEventListener("click", otherTheme);
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => ACTIONS[button.dataset.do]());
  document.addEventListener("keydown", event => {
    if (event.target.matches("input[type=search]") || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    paintTimeline();
    paintFlame();
    drawHeapAgain();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
}

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
if (views.length) {
  listen();
  selectView(views.find(view => view.ooms.some(oom => !oom.recovered)) || views[0]);
} else {
  byId("verdict").replaceChildren(make("p", { class: "word" }, "No GPU was used."));
}
document.documentElement.dataset.ready = "yes";
