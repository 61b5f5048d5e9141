"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PORTION = 30, EXTREMES = 4;
  const find = (id) => document.getElementById(id);
  if (!find("list")) return;

  // Every text goes in as text, never as markup.
  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
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

  function highlighted(text, words) {
    const lower = text.toLocaleLowerCase();
    if (!words.length || lower.length !== text.length) return [text];
    const parts = [];
    let from = 0;
    while (from < text.length) {
      let next = null;
      for (const word of words) {
        const at = lower.indexOf(word, from);
        if (at >= 0 && (next === null || at < next.at)) next = { at, end: at + word.length };
      }
      if (next === null) break;
      parts.push(text.slice(from, next.at), make("mark", "", text.slice(next.at, next.end)));
      from = next.end;
    }
    return [...parts, text.slice(from)];
  }

  const KINDS = {
    right: "is-right", exact: "is-right", mentioned: "is-right",
    wrong: "is-wrong", missing: "is-missing",
    stem: "is-partly", synonym: "is-partly", paraphrase: "is-partly", partly: "is-partly",
  };
  const tooltip = (entry) => [entry.status, entry.match && `matches “${entry.match}”`,
    typeof entry.score === "number" ? entry.score.toFixed(3) : null].filter(Boolean).join(" · ");
  const piece = (entry) => {
    const item = typeof entry === "string" ? { text: entry } : entry;
    const text = Array.isArray(item.text) ? item.text.join(" · ") : String(item.text);
    const node = make("span", KINDS[item.status] || "", text);
    node.title = tooltip(item);
    if (item.status) node.append(make("small", "", ` ${item.status}`));
    return node;
  };
  const heading = (text, body) => [make("h5", "", text), body];

  // One drawing per key of the convention in docs/details.md.
  const DRAW = {
    note: (text) => [make("p", "note", String(text))],
    words: (words) => {
      const line = make("p", "words");
      for (const word of words) {
        const node = make("span", KINDS[word.status] || "", word.text);
        node.title = tooltip(word);
        line.append(node, " ");
      }
      return [line];
    },
    missing: (items) => items.length ? heading("Left out", make("p", "chips", ...items.map(
      (item) => piece(typeof item === "string" ? { text: item } : item)))) : [],
    tuples: (items) => items.length ? heading("Graph", make("p", "chips", ...items.map(piece))) : [],
    contributions: (items) => {
      const most = Math.max(1e-12, ...items.map((item) => Math.abs(item.share ?? item.value)));
      const grid = make("div", "shares");
      for (const item of items) {
        const share = item.share ?? item.value;
        const bar = make("i", share < 0 ? "down" : "");
        bar.style.width = `${100 * Math.abs(share) / most}%`;
        grid.append(make("span", "", item.name), make("span", "", bar), make("span", "", Number(item.value).toPrecision(3)));
      }
      return heading("What made the score", grid);
    },
    regions: (items, row) => {
      const address = data.pictures[row];
      if (!address) return [];
      const image = make("img"); image.src = address; image.alt = "";
      const frame = make("div", "picture boxed", image);
      frame.style.maxWidth = "20rem";
      for (const item of items) {
        const [left, top, right, bottom] = item.box;
        const box = make("span", `box ${item.status === "missing" ? "" : "mentioned"}`);
        Object.assign(box.style, { left: `${100 * left}%`, top: `${100 * top}%`,
          width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%` });
        box.title = [item.label, tooltip(item)].filter(Boolean).join(" · ");
        frame.append(box);
      }
      return heading("Regions", frame);
    },
  };

  // Keys outside the convention: numbers and short lists as they are, anything deeper as json.
  function facts(rest) {
    const list = make("dl", "facts");
    for (const [key, value] of Object.entries(rest)) {
      const simple = Array.isArray(value) ? value.every((entry) => Object(entry) !== entry) : Object(value) !== value;
      const text = !simple ? JSON.stringify(value)
        : typeof value === "number" ? String(Number(value.toPrecision(4)))
        : Array.isArray(value) ? value.join(", ") : String(value ?? "");
      if (text) list.append(make("div", "", make("dt", "", key), " ", make("dd", simple ? "" : "deep", text)));
    }
    return list;
  }

  function why(row) {
    const explained = data.metrics.filter((metric) => metric.details[row]);
    if (!explained.length) return null;
    const panel = make("details", "why", make("summary", "", "Why?"));
    // Drawn when it is first opened: thousands of closed panels cost nothing.
    panel.addEventListener("toggle", () => {
      if (panel.childElementCount > 1) return;
      for (const metric of explained) {
        const details = metric.details[row], rest = {};
        const section = make("section", "", make("h4", "", metric.name));
        for (const key of Object.keys(DRAW)) if (details[key]) section.append(...DRAW[key](details[key], row));
        for (const key of Object.keys(details)) if (!(key in DRAW)) rest[key] = details[key];
        if (Object.keys(rest).length) section.append(facts(rest));
        panel.append(section);
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
    text.append(caption.trim() ? make("p", "candidate", ...highlighted(caption, words))
      : make("p", "candidate empty", "empty caption"));
    const references = data.references[row];
    if (references.length) text.append(make("ul", "references",
      ...references.map((reference) => make("li", "", ...highlighted(reference, words)))));
    text.append(make("p", "id", ...highlighted(data.ids[row], words)));
    const reasons = new Map();
    for (const metric of data.metrics) {
      const reason = metric.failures[row];
      if (reason) reasons.set(reason, [...(reasons.get(reason) || []), metric.name]);
    }
    for (const [reason, names] of reasons) text.append(make("p", "reason", `Not scored by ${names.join(", ")}: ${reason}`));
    const panel = why(row);
    if (panel) text.append(panel);
    node.append(text);
    if (!verdict) { node.classList.add("wide"); node.append(marks(row)); }
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
          || (show === "explained" && data.metrics.some((each) => each.details[row])));
    });
    if (order !== "file") rows = sorted(rows, order === "up" ? 1 : -1);
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
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) { event.preventDefault(); find("search").focus(); }
    if (event.key === "Escape" && event.target === find("search")) { find("search").value = ""; drawList(); }
  });
  choose(state.metric);
})();
