"use strict";
(async () => {
  const table = find("runs"), body = table.tBodies[0];
  const chosen = () => [...body.querySelectorAll("input:checked")].map((input) => input.value);
  const sizes = (bytes) => bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1000)} kB`;
  const KINDS = { score: "scores", check: "verdicts", shards: "scored shards" };

  function cell(run, metric) {
    const found = (run.metrics || []).find((each) => each.name === metric.name);
    return make("td", "number", found ? shownScore(found, found.score) : "");
  }

  function draw(runs) {
    const known = new Map();
    for (const run of runs) for (const metric of run.metrics || []) known.set(metric.name, metric);
    const metrics = [...known.values()];
    const heads = ["", "Run", "Kind", "Captions", ...metrics.map((metric) => metric.label + (metric.percent ? " ×100" : "")), "Written"];
    find("head").replaceChildren(...heads.map((text, place) => {
      const head = make("th", place > 2 && place < heads.length - 1 ? "number" : "", text || null);
      head.scope = "col";
      if (!text) head.setAttribute("aria-label", "Choose");
      return head;
    }));
    const before = new Set(chosen());
    const shown = runs.filter((run) => run.state !== "failed");
    body.replaceChildren(...shown.map((run) => {
      const box = make("input");
      box.type = "checkbox"; box.value = run.id; box.checked = before.has(run.id);
      box.disabled = run.state !== "ready" || run.kind === "check";
      box.setAttribute("aria-label", `Choose ${run.name} to be compared`);
      const name = make("a", "", run.name);
      name.href = link("run", { run: run.id });
      const captions = run.state === "ready" ? run.captions.toLocaleString("en") : "reading …";
      const row = make("tr", "", make("td", "", box), make("th", "", name), make("td", "", KINDS[run.kind]), make("td", "number", captions),
        ...metrics.map((metric) => cell(run, metric)), make("td", "when", `${new Date(1000 * run.written).toLocaleString()} · ${sizes(run.bytes)}`));
      row.cells[1].scope = "row";
      return row;
    }));
    table.hidden = !shown.length;
    find("compare").hidden = shown.filter((run) => run.kind !== "check").length < 2;
    find("about").textContent = shown.length ? `${plural(shown.length, "run")}. Choose two or more to compare them.`
      : "No run is here yet. Start the server with the folder that holds them: caplens serve RUNS; caplens score … --json RUNS/name.json writes one.";
    find("failed").replaceChildren(...runs.filter((run) => run.state === "failed").map((run) => make("p", "note", `${run.name} cannot be shown: ${run.error}`)));
    tell();
  }
  function tell() {
    const count = chosen().length;
    find("compare").disabled = count < 2;
    find("chosen").textContent = count ? `${plural(count, "run")} chosen` : "";
  }

  body.addEventListener("input", tell);
  find("choice").addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen().length > 1) location.assign(link("compare", chosen().map((run) => ["run", run])));
  });
  try {
    for (;;) {
      const runs = await source.runs();
      draw(runs);
      if (!runs.some((run) => run.state === "reading")) break;
      await pause(1);
    }
  } catch (error) { find("about").textContent = error.message; }
})();
