"use strict";
(async () => {
  const exported = document.body.dataset.exported === "yes";  // then it is settled which runs are compared
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
    const heads = [...(exported ? [] : [""]), "Run", "Kind", "Captions", ...metrics.map((metric) => metric.label + (metric.percent ? " ×100" : "")), "Written"];
    find("head").replaceChildren(...heads.map((text, place) => {
      const head = make("th", place > heads.indexOf("Kind") && place < heads.length - 1 ? "number" : "", text || null);
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
      const row = make("tr", "", exported ? null : make("td", "", box), make("th", "", name), make("td", "", KINDS[run.kind]), make("td", "number", captions),
        ...metrics.map((metric) => cell(run, metric)), make("td", "when", `${new Date(1000 * run.written).toLocaleString()} · ${sizes(run.bytes)}`));
      row.querySelector("th").scope = "row";
      return row;
    }));
    table.hidden = !shown.length;
    const compared = runs.filter((run) => run.compared);
    find("compare").hidden = exported ? compared.length < 2 : shown.filter((run) => run.kind !== "check").length < 2;
    if (exported) find("compare").textContent = `Compare ${compared.map((run) => run.name).join(", ")}`;
    find("about").textContent = shown.length ? plural(shown.length, "run") + (exported ? "" : ". Choose two or more to compare them.")
      : "No run is here yet. Start the server with the folder that holds them: caplens serve RUNS; caplens score … --json RUNS/name.json writes one.";
    find("failed").replaceChildren(...runs.filter((run) => run.state === "failed").map((run) => make("p", "note", `${run.name} cannot be shown: ${run.error}`)));
    tell();
  }
  function tell() {
    const count = chosen().length;
    find("compare").disabled = !exported && count < 2;
    find("chosen").textContent = count ? `${plural(count, "run")} chosen` : "";
  }

  body.addEventListener("input", tell);
  find("choice").addEventListener("submit", (event) => {
    event.preventDefault();
    if (exported || chosen().length > 1) location.assign(link("compare", chosen().map((run) => ["run", run])));
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
