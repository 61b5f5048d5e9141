"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PORTION = 30, EXTREMES = 4;
  const find = (id) => document.getElementById(id);
  if (!find("list")) return;

  const { highlighted } = caplensDetails;
  const shown = (metric, score) => metric.percent ? (score * 100).toFixed(2) : score.toFixed(3);
  const scale = (metric) => metric.percent ? 100 : 1;

  for (const metric of data.metrics) {
    const known = metric.scores.filter((score) => score !== null);
    metric.low = known.reduce((a, b) => Math.min(a, b), Infinity);
    metric.high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  }
  const haystack = data.captions.map((caption, row) =>
    [data.ids[row], caption, ...data.references[row]].join("\n").toLocaleLowerCase());
  const state = { metric: data.metrics.length - 1, rows: [], drawn: 0 };

  function why(row, references) {
    const explained = data.views.filter((view) => view.details[row]);
    if (!explained.length) return null;
    const panel = make("details", "why", make("summary", "", "Why?"));
    // Drawn when it is first opened: thousands of closed panels cost nothing.
    panel.addEventListener("toggle", () => {
      if (panel.childElementCount > 1) return;
      for (const view of explained) {
        const options = { caption: data.captions[row], picture: data.pictures[row], references };
        panel.append(make("section", "", make("h4", "", view.name), caplensDetails.draw(view.details[row], options)));
      }
    });
    return panel;
  }

  function marks(row) {
    const list = make("dl", "marks");
    data.metrics.forEach((metric, number) => {
      const score = metric.scores[row];
      const gauge = make("span", "gauge", make("i"));
      const width = metric.high > metric.low ? (score - metric.low) / (metric.high - metric.low) : 1;
      gauge.firstChild.style.width = score === null ? "0" : `${100 * width}%`;
      const name = make("dt", "", metric.name);
      name.title = metric.name;
      list.append(make("div", number === state.metric ? "chosen" : "", name, gauge,
        make("dd", "", score === null ? "–" : shown(metric, score))));
    });
    return list;
  }

  function card(row, words, verdict) {
    const caption = data.captions[row], address = data.pictures[row];
    const node = make("li", "caption");
    if (Object.keys(data.pictures).length) {
      const picture = make("div", "picture");
      if (address) {
        const image = make("img");
        image.src = address; image.alt = ""; image.loading = "lazy";
        picture.append(image);
      } else picture.append(make("div", "nothing", "no picture here"));
      node.append(picture);
    } else node.classList.add("plain");
    const text = make("div", "text", verdict ? make("p", "verdict", verdict) : null);
    const line = caption.trim() ? make("p", "candidate", ...highlighted(caption, words))
      : make("p", "candidate empty", "empty caption");
    line.dir = "auto";
    text.append(line);
    const references = data.references[row].map((reference) => make("li", "", ...highlighted(reference, words)));
    for (const item of references) item.dir = "auto";
    if (references.length) text.append(make("ul", "references", ...references));
    text.append(make("p", "id", ...highlighted(data.ids[row], words)));
    const reasons = new Map();
    for (const metric of data.metrics) {
      const reason = metric.failures[row];
      if (reason) reasons.set(reason, [...(reasons.get(reason) || []), metric.name]);
    }
    for (const [reason, names] of reasons) text.append(make("p", "reason", `Not scored by ${names.join(", ")}: ${reason}`));
    node.append(text);
    if (!verdict) { node.classList.add("wide"); node.append(marks(row)); }
    const panel = why(row, references);
    if (panel) node.append(panel);
    return node;
  }

  function sorted(rows, direction) {
    const scores = data.metrics[state.metric].scores;
    // Captions without a score come last either way.
    return rows.filter((row) => scores[row] !== null).sort((a, b) => direction * (scores[a] - scores[b]) || a - b)
      .concat(rows.filter((row) => scores[row] === null));
  }

  function drawExtremes() {
    const metric = data.metrics[state.metric];
    const rows = sorted(data.ids.map((_, row) => row), metric.higherIsBetter ? 1 : -1)
      .filter((row) => metric.scores[row] !== null);
    const side = Math.min(EXTREMES, Math.ceil(rows.length / 2));
    const verdict = (row) => `${metric.name} ${shown(metric, metric.scores[row])}`;
    find("worst").replaceChildren(...rows.slice(0, side).map((row) => card(row, [], verdict(row))));
    find("best").replaceChildren(...rows.slice(Math.max(side, rows.length - side)).reverse().map(
      (row) => card(row, [], verdict(row))));
  }

  // Whether some metric found wrong words in the caption, or something it leaves out.
  const FOUND = {
    wrong: (details) => (details.words || []).some((word) => word.status === "wrong"),
    missing: (details) => (details.missing || []).length > 0,
  };
  const has = (row, kind) => kind in FOUND && data.views.some((view) => view.details[row] && FOUND[kind](view.details[row]));

  const typed = (id) => find(id).value === "" ? null : Number(find(id).value);

  function drawList() {
    const metric = data.metrics[state.metric];
    const words = find("search").value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const low = typed("low"), high = typed("high"), show = find("show").value, order = find("order").value;
    // A bound is typed or taken from a bar with the digits people see; half a digit of slack keeps its captions in.
    const slack = metric.percent ? 0.005 : 0.0005;
    let rows = data.ids.map((_, row) => row).filter((row) => {
      const score = metric.scores[row];
      return words.every((word) => haystack[row].includes(word))
        && (low === null || (score !== null && score * scale(metric) >= low - slack))
        && (high === null || (score !== null && score * scale(metric) <= high + slack))
        && (show === "all"
          || (show === "unscored" && data.metrics.some((each) => each.scores[row] === null))
          || (show === "empty" && !data.captions[row].trim())
          || (show === "explained" && data.views.some((view) => view.details[row]))
          || has(row, show));
    });
    if (order !== "file") rows = sorted(rows, (order === "worst") === metric.higherIsBetter ? 1 : -1);
    state.rows = rows;
    state.words = words;
    state.drawn = 0;
    find("list").replaceChildren();
    drawMore();
    const all = data.ids.length, count = rows.length.toLocaleString("en");
    find("count").textContent = rows.length === all ? `${count} caption${all === 1 ? "" : "s"}`
      : `${count} of ${all.toLocaleString("en")} captions`;
  }

  function drawMore() {
    const next = state.rows.slice(state.drawn, state.drawn + PORTION);
    find("list").append(...next.map((row) => card(row, state.words)));
    state.drawn += next.length;
    find("more").hidden = state.drawn >= state.rows.length;
  }

  function choose(number) {
    state.metric = number;
    find("metric").value = String(number);
    for (const button of document.querySelectorAll(".tabs button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.metric) === number));
    }
    drawExtremes();
    drawList();
  }

  find("search").addEventListener("input", drawList);
  for (const id of ["order", "low", "high", "show"]) find(id).addEventListener("input", drawList);
  find("metric").addEventListener("input", () => choose(Number(find("metric").value)));
  find("more").addEventListener("click", drawMore);
  const form = document.querySelector(".tools");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => choose(state.metric)));
  for (const button of document.querySelectorAll(".tabs button")) {
    button.addEventListener("click", () => choose(Number(button.dataset.metric)));
  }
  for (const button of document.querySelectorAll(".scores .name")) {
    button.addEventListener("click", () => {
      choose(Number(button.dataset.metric));
      find("extremes-title").scrollIntoView();
    });
  }
  for (const bar of document.querySelectorAll(".histogram .catch")) {
    bar.addEventListener("click", () => {
      const number = Number(bar.parentNode.dataset.metric), metric = data.metrics[number];
      const digits = metric.percent ? 2 : 3;
      find("low").value = (Number(bar.dataset.low) * scale(metric)).toFixed(digits);
      find("high").value = (Number(bar.dataset.high) * scale(metric)).toFixed(digits);
      choose(number);
      find("captions-title").scrollIntoView();
    });
    // One stop of the Tab key per histogram; arrows move between its bars.
    bar.addEventListener("keydown", (event) => {
      const bars = [...bar.parentNode.querySelectorAll(".catch")], steps = { ArrowRight: 1, ArrowLeft: -1 };
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        bar.dispatchEvent(new MouseEvent("click"));
      } else if (event.key in steps) {
        event.preventDefault();
        const next = bars[bars.indexOf(bar) + steps[event.key]];
        if (!next) return;
        bar.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) { event.preventDefault(); find("search").focus(); }
    if (event.key === "Escape" && event.target === find("search")) { find("search").value = ""; drawList(); }
  });
  choose(state.metric);
})();
