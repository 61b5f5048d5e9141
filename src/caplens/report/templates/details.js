"use strict";
// Draws what metrics say about one caption (docs/guide/details.md), for every page that shows it.
const caplensDetails = (() => {
  const KINDS = {
    right: "is-right", exact: "is-right", mentioned: "is-right",
    wrong: "is-wrong", missing: "is-missing",
    stem: "is-partly", synonym: "is-partly", paraphrase: "is-partly", partly: "is-partly",
  };
  const SAID = {
    right: "supported", exact: "supported", mentioned: "mentioned", wrong: "not supported", missing: "not mentioned",
    stem: "another form", synonym: "a synonym", paraphrase: "a paraphrase", partly: "partly supported",
  };
  const QUESTIONS = { precision: "Are its words right?", recall: "Does it say what is there?", overall: "Overall" };
  const number = (value) => typeof value === "number" ? String(Number(value.toPrecision(3))) : "–";
  const remark = (entry) => [SAID[entry.status] || entry.status, entry.match && `matches “${entry.match}”`, entry.note,
    typeof entry.score === "number" ? number(entry.score) : null].filter(Boolean).join(" · ");
  const title = (text) => make("h5", "", text);

  // Marks every place of some phrases in a text.
  function highlighted(text, phrases, wholeWords) {
    const wanted = phrases.filter(Boolean).map((phrase) => phrase.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    if (!wanted.length) return [text];
    const [before, after] = wholeWords ? ["(?<![\\p{L}\\p{N}])", "(?![\\p{L}\\p{N}])"] : ["", ""];
    const pattern = new RegExp(`${before}(?:${wanted.join("|")})${after}`, "giu");
    const parts = [];
    let from = 0;
    for (const found of text.matchAll(pattern)) {
      parts.push(text.slice(from, found.index), make("mark", "", found[0]));
      from = found.index + found[0].length;
    }
    return [...parts, text.slice(from)];
  }

  // Entries that belong together light up together: by pointer, by keyboard, and until the next click by a click.
  class Links {
    constructor(root, line, references) {
      this.root = root; this.line = line;
      // As they stand, perhaps with marks of a search.
      this.references = (references || []).map((item) => ({ item, plain: [...item.childNodes].map((node) => node.cloneNode(true)) }));
      this.pinned = null;
      root.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { this.pinned = null; this.clear(); }
      });
    }
    add(node, text, phrases, friends) {
      node.tabIndex = 0;
      const light = () => this.light([node, ...friends()], text, phrases);
      node.addEventListener("mouseenter", () => { if (!this.pinned) light(); });
      node.addEventListener("focus", light);
      for (const leave of ["mouseleave", "blur"]) {
        node.addEventListener(leave, () => { if (!this.pinned || leave === "blur") { this.pinned = null; this.clear(); } });
      }
      node.addEventListener("click", () => {
        const again = this.pinned === node;
        this.pinned = null;
        light();
        this.pinned = again ? null : node;
      });
    }
    light(nodes, text, phrases) {
      this.clear();
      this.root.classList.add("linking");
      for (const node of nodes) node.classList.add("lit");
      const boxes = nodes.filter((node) => node.classList.contains("box"));
      if (boxes.length === 1) boxes[0].classList.add("alone");  // the rest of the picture goes dark
      this.line.textContent = text;
      for (const { item } of this.references) item.replaceChildren(...highlighted(item.textContent, phrases, true));
    }
    clear() {
      this.root.classList.remove("linking");
      for (const node of this.root.querySelectorAll(".lit")) node.classList.remove("lit", "alone");
      this.line.textContent = "";
      for (const { item, plain } of this.references) item.replaceChildren(...plain.map((node) => node.cloneNode(true)));
    }
  }

  // The words where they stand in the caption, with what stands between them; words it does not have follow in a row.
  function laidOut(caption, words, draw) {
    const nodes = [], lower = caption.toLowerCase();
    const same = lower.length === caption.length;
    let from = 0, lost = !same;
    for (const word of words) {
      const text = String(word.text), at = same ? lower.indexOf(text.toLowerCase(), from) : -1;
      if (at >= 0 && !/[\p{L}\p{N}]/u.test(caption.slice(from, at))) {
        if (at > from) nodes.push(caption.slice(from, at));
        nodes.push(draw(word, caption.slice(at, at + text.length)));
        from = at + text.length;
      } else {
        lost = true;
        if (nodes.length) nodes.push(" ");
        nodes.push(draw(word, text));
      }
    }
    return lost ? nodes : [...nodes, caption.slice(from)];
  }

  function scores(details) {
    const rows = Object.keys(QUESTIONS).filter((key) => key in details);
    if (!rows.length) return [];
    const grid = make("div", "answers");
    const standing = details.percentiles || {};
    for (const key of rows) {
      const value = standing[key] ?? details[key], share = typeof value === "number" && value >= 0 && value <= 1;
      const bar = make("span", "gauge", make("i"));
      bar.firstChild.style.width = share ? `${100 * value}%` : "0";
      const answer = make("span", "value",
        typeof value !== "number" ? "cannot be said" : share ? `${Math.round(100 * value)} %` : number(value));
      answer.title = number(details[key]);
      grid.append(make("span", "question", QUESTIONS[key]), share ? bar : make("span"), answer);
    }
    const meaning = rows.some((key) => key in standing)
      ? [make("p", "note", "The bars say how many captions by people score lower.")] : [];
    return [grid, ...meaning];
  }

  function bars(name, rows, most) {
    const grid = make("div", "shares");
    for (const { label, share, shown } of rows) {
      const bar = make("i", share < 0 ? "down" : "");
      bar.style.width = `${100 * Math.abs(share ?? 0) / most}%`;
      grid.append(make("span", "", label), make("span", "", bar), make("span", share === null ? "none" : "", shown));
    }
    return [title(name), grid];
  }

  const DRAWN = new Set(["note", "percentiles", "words", "sentences", "missing", "tuples", "categories", "contributions", "regions", ...Object.keys(QUESTIONS)]);

  // Keys outside the convention: numbers and short lists as they are, anything deeper as json.
  function facts(details) {
    const list = make("dl", "facts");
    for (const [key, value] of Object.entries(details)) {
      if (DRAWN.has(key)) continue;
      const simple = Array.isArray(value) ? value.every((entry) => Object(entry) !== entry) : Object(value) !== value;
      const text = !simple ? JSON.stringify(value)
        : typeof value === "number" ? String(Number(value.toPrecision(4)))
        : Array.isArray(value) ? value.join(", ") : String(value ?? "");
      if (text) list.append(make("div", "", make("dt", "", key), " ", make("dd", simple ? "" : "deep", text)));
    }
    return list.childElementCount ? [list] : [];
  }

  // options: caption, picture (an address), references (list items whose text the words can light up).
  function draw(details, options) {
    const root = make("div", "explained"), main = make("div"), more = make("div");
    const line = make("p", "remark");
    line.setAttribute("aria-live", "polite");
    const links = new Links(root, line, options.references);
    const regions = options.picture ? details.regions || [] : [];
    const boxes = regions.map(() => make("span"));
    const namers = regions.map(() => []);
    const names = regions.map(() => []);
    const link = (entry, node, text, phrases) => {
      for (const place of entry.regions || []) if (namers[place]) namers[place].push(node);
      links.add(node, [text, remark(entry)].filter(Boolean).join(": "), phrases,
        () => (entry.regions || []).map((place) => boxes[place]).filter(Boolean));
    };

    if (details.note) main.append(make("p", "note", String(details.note)));
    if (details.words && details.words.length) {
      const words = make("p", "words", ...laidOut(options.caption || "", details.words, (word, text) => {
        const node = make("span", KINDS[word.status] || "", text);
        if (KINDS[word.status] || (word.regions || []).length) {
          node.title = remark(word);
          link(word, node, text, [text, word.match]);
          for (const place of word.regions || []) if (names[place]) names[place].push(text);
        }
        return node;
      }));
      words.dir = "auto";
      main.append(words, line);
    }
    main.append(...scores(details));
    if ((details.sentences || []).length) {
      main.append(title("Sentence by sentence"), make("ol", "sentences", ...details.sentences.map((sentence) => {
        const text = make("span", KINDS[sentence.status] || "", String(sentence.text));
        text.dir = "auto";
        const item = make("li", "", text, " ", make("small", "", number(sentence.score)));
        item.title = remark(sentence);
        return item;
      })));
    }
    const missing = (details.missing || []).map((item) => typeof item === "string" ? { text: item } : item);
    if (missing.length) {
      const chips = make("p", "chips", ...missing.map((item) => {
        const node = make("span", "is-missing", String(item.text));
        node.title = remark(item);
        link(item, node, String(item.text), [String(item.text)]);
        return node;
      }));
      chips.dir = "auto";
      main.append(title("Left out"), chips);
    }
    const claims = details.tuples || [];
    for (const kind of new Set(claims.map((claim) => claim.kind || ""))) {
      more.append(title(kind ? `It claims: ${kind}s` : "It claims"), make("p", "chips",
        ...claims.filter((claim) => (claim.kind || "") === kind).map((claim) => {
          const node = make("span", KINDS[claim.status] || "", [].concat(claim.text).join(" · "));
          node.title = remark(claim);
          return node;
        })));
    }
    const kinds = Object.entries(details.categories || {});
    if (kinds.some(([, value]) => value !== null)) {
      more.append(...bars("By kind of content", kinds.map(([label, value]) => (
        { label, share: value, shown: value === null ? "none" : number(value) })), 1));
    }
    if ((details.contributions || []).length) {
      const rows = details.contributions.map((item) => (
        { label: item.name, share: item.share ?? item.value, shown: Number(item.value).toPrecision(3) }));
      more.append(...bars("What made the score", rows, Math.max(1e-12, ...rows.map((row) => Math.abs(row.share)))));
    }
    more.append(...facts(details));

    if (regions.length) {
      const image = make("img");
      image.src = options.picture;
      image.alt = options.caption || "";
      const frame = make("div", "picture boxed", image);
      const area = ({ box }) => (box[2] - box[0]) * (box[3] - box[1]);
      regions.map((region, place) => [area(region), place]).sort((a, b) => b[0] - a[0]).forEach(([, place]) => {
        // The largest first, so that a small box inside it can be pointed at.
        const region = regions[place], node = boxes[place], [left, top, right, bottom] = region.box;
        const other = !region.label && KINDS[region.status] !== "is-right";  // too little is known to say it is missing
        node.className = `box ${other ? "other" : KINDS[region.status] || ""}`;
        Object.assign(node.style, { left: `${100 * left}%`, top: `${100 * top}%`,
          width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%` });
        const label = region.label || names[place][0] || "";
        if (label) node.append(make("b", "", label));
        const said = names[place].length ? `named by ${names[place].map((name) => `“${name}”`).join(", ")}` : null;
        const text = [label || "region", remark(region), said].filter(Boolean).join(" · ");
        node.title = text;
        node.setAttribute("role", "img");
        node.setAttribute("aria-label", text);
        links.add(node, text, [], () => namers[place]);
        frame.append(node);
      });
      const legend = make("p", "legend");
      for (const [kind, text] of [["is-right", "mentioned"], ["is-partly", "partly"], ["is-missing", "not mentioned"]]) {
        const count = boxes.filter((node) => node.classList.contains(kind)).length;
        if (count) legend.append(make("span", kind, `${count} ${text}`), " ");
      }
      const others = boxes.filter((node) => node.classList.contains("other")).length;
      if (others) {
        const choice = make("input");
        choice.type = "checkbox";
        choice.addEventListener("input", () => frame.classList.toggle("all", choice.checked));
        legend.append(make("label", "", choice, ` ${others} without a name`));
      }
      root.append(make("div", "seen", frame, legend));
      root.classList.add("with-picture");
    }
    if (!line.parentNode) main.append(line);
    root.append(make("div", "reading", main, more.childElementCount ? more : null));
    return root;
  }

  return { draw, highlighted };
})();
