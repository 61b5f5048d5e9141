"use strict";
(async () => {
  const PORTION = 30;
  const id = new URLSearchParams(location.search).get("run") || "";
  const SHOW = {
    all: "all captions", wrong: "verdict: wrong", doubtful: "verdict: doubtful", fine: "verdict: fine",
    "wrong-words": "with wrong words", "left-out": "with things left out", unscored: "not scored", empty: "empty captions",
  };
  let run, drawn = 0, asking = null;
  try {
    run = await source.run(id);
  } catch (error) { find("facts").textContent = error.message; return; }
  document.title = `${run.name} · caplens`;
  find("title").textContent = run.name;
  find("facts").textContent = `${plural(run.captions, "caption")}, ${plural(run.metrics.length, "metric")}`;
  for (const note of run.notes) find("facts").after(make("p", "note", note));
  for (const [name, reason] of Object.entries(run.errors)) find("facts").after(make("p", "note", `${name} was not computed: ${reason}`));

  function histogram(metric, place) {
    const most = Math.max(...metric.histogram.map(([, , count]) => count), 1);
    const bars = make("div", "bars");
    bars.setAttribute("role", "toolbar");
    bars.setAttribute("aria-label", `Histogram of ${metric.label}: arrows move, Enter shows the captions`);
    metric.histogram.forEach(([low, high, count], number) => {
      const bar = make("button", "", make("i"));
      bar.type = "button";
      bar.tabIndex = number ? -1 : 0;
      bar.firstChild.style.height = count ? `${Math.max(4, 100 * count / most)}%` : "0";
      bar.title = `${plural(count, "caption")} from ${shownScore(metric, low)} to ${shownScore(metric, high)}`;
      bar.setAttribute("aria-label", bar.title);
      bar.addEventListener("click", () => {
        find("metric").value = String(place);
        find("low").value = shownScore(metric, low);
        find("high").value = shownScore(metric, high);
        draw();
        find("captions-title").scrollIntoView();
      });
      bar.addEventListener("keydown", (event) => {
        const next = { ArrowRight: bar.nextElementSibling, ArrowLeft: bar.previousElementSibling }[event.key];
        if (!next) return;
        event.preventDefault();
        bar.tabIndex = -1; next.tabIndex = 0; next.focus();
      });
      bars.append(bar);
    });
    return bars;
  }

  if (run.metrics.length) {
    find("scores").replaceChildren(...run.metrics.map((metric, place) => {
      const interval = metric.interval ? `${shownScore(metric, metric.interval[0])} to ${shownScore(metric, metric.interval[1])}` : "–";
      const signature = make("details", "signature", make("summary", "", "Signature"), make("code", "", metric.signature), ...metric.notes.map((note) => make("p", "note", note)));
      return make("article", "metric", make("h3", "", metric.label),
        make("p", "value", shownScore(metric, metric.score), metric.percent ? make("small", "", " ×100") : null),
        make("p", "note", `95 % interval ${interval}`), histogram(metric, place), signature);
    }));
    find("scores-section").hidden = false;
  }
  find("metric").replaceChildren(...run.metrics.map((metric, place) => {
    const option = make("option", "", metric.label);
    option.value = String(place);
    return option;
  }));
  find("metric-field").hidden = !run.metrics.length;
  for (const name of ["order", "low", "high"]) find(name).closest("label").hidden = !run.metrics.length;
  find("metric").value = String(run.metrics.length - 1);
  find("show").replaceChildren(...Object.entries(SHOW).filter(([name]) => name === "all" || run.counts[name]).map(([name, text]) => {
    const option = make("option", "", `${text} (${run.counts[name].toLocaleString("en")})`);
    option.value = name;
    return option;
  }));
  find("captions-section").hidden = false;

  function query() {
    const wanted = { words: find("words").value, show: find("show").value, order: "file", offset: drawn, limit: PORTION };
    if (run.metrics.length) {
      const metric = run.metrics[Number(find("metric").value)], scale = metric.percent ? 100 : 1;
      Object.assign(wanted, { metric: find("metric").value, order: find("order").value });
      // A bound has the digits people see; half a digit of slack keeps its captions in.
      const slack = metric.percent ? 0.005 : 0.0005;
      if (find("low").value !== "") wanted.low = (Number(find("low").value) - slack) / scale;
      if (find("high").value !== "") wanted.high = (Number(find("high").value) + slack) / scale;
    }
    return wanted;
  }

  async function draw(more = false) {
    if (asking) asking.abort();
    asking = new AbortController();
    if (!more) drawn = 0;
    let page;
    try {
      page = await source.captions(id, query(), asking.signal);
    } catch (error) {
      if (error.name !== "AbortError") find("count").textContent = error.message;
      return;
    }
    const words = find("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = run.metrics.length ? Number(find("metric").value) : -1;
    const cards = page.rows.map((row) => caplensCards.card(run, row, words, chosen));
    if (more) find("list").append(...cards); else find("list").replaceChildren(...cards);
    drawn += page.rows.length;
    find("more").hidden = drawn >= page.total;
    find("count").textContent = page.total === run.captions ? plural(page.total, "caption")
      : `${page.total.toLocaleString("en")} of ${plural(run.captions, "caption")}`;
    if (more && cards.length) { cards[0].tabIndex = -1; cards[0].focus({ preventScroll: true }); }
  }

  let typing;
  for (const name of ["words", "low", "high"]) {
    find(name).addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(draw, 150); });
  }
  for (const name of ["metric", "order", "show"]) find(name).addEventListener("input", () => draw());
  find("tools").addEventListener("submit", (event) => { event.preventDefault(); draw(); });
  find("tools").addEventListener("reset", () => setTimeout(() => { find("metric").value = String(run.metrics.length - 1); draw(); }));
  find("more").addEventListener("click", () => draw(true));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) { event.preventDefault(); find("words").focus(); }
  });
  draw();
})();
