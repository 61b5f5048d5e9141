"use strict";
(async () => {
  const name = new URLSearchParams(location.search).get("session") || "";
  const base = `/v1/sessions/${encodeURIComponent(name)}`;
  const WORDS = { 1: "wrong", 5: "perfect" };
  let rater = "", current = null, busy = false;
  const tell = (text) => { find("status").textContent = text; };

  async function summarize() {
    const session = await ask(base);
    find("title").textContent = session.name;
    document.title = `${session.name} · caplens`;
    const people = Object.entries(session.raters).map(([person, count]) => `${person}: ${count} of ${session.items}`).join(", ");
    const alpha = session.alpha === null ? "Krippendorff’s α needs items that two people have rated."
      : `Krippendorff’s α = ${session.alpha.toFixed(2)} (${session.level}) over ${plural(session.shared, "item")} that two or more have rated; 1 is perfect agreement, 0 is chance.`;
    find("summary").replaceChildren(make("p", "", people || "Nobody has rated yet."), make("p", "note", alpha),
      make("p", "note", `Every judgment is kept at once in ${session.folder}.`));
    find("bench").disabled = !session.judgments;
    return session;
  }

  function choices(kind) {
    const buttons = kind === "rating" ? [1, 2, 3, 4, 5].map((value) => [value, String(value), WORDS[value]])
      : [[1, "Left is better", "←"], [0, "Alike", "="], [2, "Right is better", "→"]];
    return buttons.map(([value, text, key]) => {
      const button = make("button", "answer", text, key ? make(kind === "rating" ? "small" : "kbd", "", key) : null);
      button.type = "button";
      button.dataset.value = String(value);
      button.addEventListener("click", () => rate(value));
      return button;
    });
  }

  function show(next) {
    current = next.item;
    find("progress").max = next.total;
    find("progress").value = next.done;
    find("place").textContent = `${next.done} of ${next.total} done`;
    find("undo").disabled = !next.done;
    if (!current) {
      find("question").textContent = "All done. Thank you!";
      for (const id of ["picture", "texts", "answers"]) find(id).replaceChildren();
      return;
    }
    find("question").textContent = next.kind === "rating" ? "How well does the caption fit the picture?" : "Which caption fits the picture better?";
    const image = make("img");
    image.alt = "The picture to be judged";
    image.src = `${base}/pictures/${current.item}`;
    find("picture").replaceChildren(...(current.picture ? [image] : []));
    find("texts").className = find("answers").className = next.kind;
    find("texts").replaceChildren(...current.captions.map((caption, place) => {
      const text = make("p", "candidate", caption || "(empty)");
      text.dir = "auto";
      return next.kind === "rating" ? text : make("div", "", make("h3", "", place ? "Right" : "Left"), text);
    }));
    if (find("answers").childElementCount === 0) find("answers").replaceChildren(...choices(next.kind));
  }

  async function step(path, body) {
    if (busy) return;
    busy = true;
    try {
      show(await ask(base + path, { body }));
      tell("");
    } catch (error) { tell(error.message); } finally { busy = false; }
    summarize().catch((error) => tell(error.message));  // the next answer need not wait for it
  }
  const rate = (value) => current && step("/ratings", { rater, item: current.item, value });

  find("who").addEventListener("submit", async (event) => {
    event.preventDefault();
    rater = find("rater").value.trim();
    if (!rater) return;
    try {
      show(await ask(`${base}/next?${new URLSearchParams({ rater })}`));
      find("who").hidden = true;
      find("rating").hidden = false;
      find("question").tabIndex = -1;
      find("question").focus();
    } catch (error) { tell(error.message); }
  });
  find("undo").addEventListener("click", () => step("/undo", { rater }));
  document.addEventListener("keydown", (event) => {
    if (!rater || event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = find("texts").className === "rating" ? { 1: 1, 2: 2, 3: 3, 4: 4, 5: 5 }
      : { ArrowLeft: 1, 1: 1, ArrowRight: 2, 2: 2, "=": 0, 0: 0 };
    if (event.key.toLowerCase() === "u") { event.preventDefault(); find("undo").click(); }
    else if (event.key in keys) { event.preventDefault(); rate(keys[event.key]); }
  });

  find("bench").addEventListener("click", async () => {
    const bar = find("working");
    bar.hidden = false;
    bar.removeAttribute("value");
    find("bench").disabled = true;
    try {
      const report = await runJob("bench", { session: name }, (job) => {
        tell(job.task ? `${job.task} …` : "Waiting for other work …");
        if (job.total) { bar.max = job.total; bar.value = job.done; }
      });
      tell("");
      find("agreement").replaceChildren(...report.sets.flatMap(drawSet));
    } catch (error) { tell(error.message); } finally { bar.hidden = true; find("bench").disabled = false; }
  });

  const FIGURES = { "tau-c": "Kendall τc ×100", accuracy: "Pairs right, %" };
  function drawSet(set) {
    const figure = set.figures.find((row) => row.figure in FIGURES)?.figure;
    const rows = set.figures.filter((row) => row.figure === figure && row.value !== null).sort((a, b) => b.value - a.value);
    const head = make("tr", "", ...["Metric", FIGURES[figure] || "", "95 % interval", "Rank"].map((text, place) => {
      const cell = make("th", place ? "number" : "", text);
      cell.scope = "col";
      return cell;
    }));
    const body = rows.map((row) => make("tr", "", make("th", "", row.metric), make("td", "number", row.value.toFixed(1)),
      make("td", "number", row.low === null ? "–" : `${row.low.toFixed(1)} to ${row.high.toFixed(1)}`), make("td", "number", row.cluster ? String(row.cluster) : "–")));
    for (const row of body) row.cells[0].scope = "row";
    const first = rows.filter((row) => row.cluster === 1).map((row) => row.metric);
    const said = !rows.length ? "No metric could be measured." : first.length === rows.length ? "These ratings cannot tell the metrics apart yet: more are needed."
      : `${first.join(", ")} ${first.length === 1 ? "agrees" : "agree"} best with your people.`;
    return [make("p", "said", said), make("div", "wide-table", make("table", "runs", make("thead", "", head), make("tbody", "", ...body))),
      make("p", "note", "Metrics of one rank cannot be told apart by these ratings."),
      ...Object.entries(set.skipped || {}).map(([metric, reason]) => make("p", "note", `${metric} was not measured: ${reason}`))];
  }

  find("download").href = `${base}/ratings.csv`;
  try { await summarize(); } catch (error) { tell(error.message); }
})();
