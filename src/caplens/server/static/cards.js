"use strict";
// One caption of a run: its picture, its text, its scores, and what explains it.
const caplensCards = (() => {
  function picture(run, row, alt = "") {
    const frame = make("div", "picture");
    if (!row.picture) return make("div", "picture", make("div", "nothing", "no picture"));
    const image = make("img");
    image.alt = alt; image.loading = "lazy"; image.decoding = "async";
    image.addEventListener("error", () => frame.replaceChildren(make("div", "nothing", "no picture here")));
    image.src = source.picture(run.id, row.row);
    frame.append(image);
    return frame;
  }

  function marks(run, row, chosen) {
    const list = make("dl", "marks");
    run.metrics.forEach((metric, place) => {
      const score = row.scores[place], bars = metric.histogram;
      const gauge = make("span", "gauge", make("i"));
      const low = bars.length ? bars[0][0] : 0, high = bars.length ? bars[bars.length - 1][1] : 1;
      const share = score === null ? 0 : high > low ? (score - low) / (high - low) : 1;
      gauge.firstChild.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
      const name = make("dt", "", metric.label);
      name.title = metric.label;
      list.append(make("div", place === chosen ? "chosen" : "", name, gauge, make("dd", "", shownScore(metric, score))));
    });
    return list;
  }

  function why(run, row, references) {
    if (!row.explained && !Object.keys(row.details || {}).length) return null;
    const panel = make("details", "why", make("summary", "", "Why?"));
    panel.addEventListener("toggle", async () => {
      if (panel.childElementCount > 1) return;
      const details = await source.details(run.id, row);
      for (const [name, entry] of Object.entries(details)) {
        const options = { caption: row.caption, picture: row.picture ? source.picture(run.id, row.row, 1000) : null, references };
        panel.append(make("section", "", make("h4", "", name), caplensDetails.draw(entry, options)));
      }
    });
    return panel;
  }

  function card(run, row, words, chosen) {
    const node = make("li", "caption");
    if (run.pictures) node.append(picture(run, row)); else node.classList.add("plain");
    const { highlighted } = caplensDetails;
    const text = make("div", "text");
    if (row.verdict) text.append(make("span", `verdict ${row.verdict}`, row.verdict));
    const line = row.caption.trim() ? make("p", "candidate", ...highlighted(row.caption, words)) : make("p", "candidate empty", "empty caption");
    line.dir = "auto";
    text.append(line);
    if (row.reasons.length) text.append(make("ul", "reasons", ...row.reasons.map((reason) => make("li", reason.verdict, reason.message))));
    const references = row.references.map((reference) => make("li", "", ...highlighted(reference, words)));
    for (const item of references) item.dir = "auto";
    if (references.length) text.append(make("ul", "references", ...references));
    text.append(make("p", "id", ...highlighted(row.id, words)));
    for (const [name, reason] of Object.entries(row.failures)) text.append(make("p", "reason", `Not scored by ${name}: ${reason}`));
    node.append(text);
    if (run.metrics.length) { node.classList.add("wide"); node.append(marks(run, row, chosen)); }
    const panel = why(run, row, references);
    if (panel) node.append(panel);
    return node;
  }

  return { card, picture };
})();
