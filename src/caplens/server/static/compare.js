"use strict";
(async () => {
  const PORTION = 20;
  const chosen = new URLSearchParams(location.search).getAll("run");
  const tell = (text) => { find("status").textContent = text; };
  const bar = find("progress");
  let runs, comparison, count = PORTION;
  try {
    const all = await source.runs();
    if (document.body.dataset.exported !== "yes" && chosen.length < 2) {
      const runs = make("a", "", "Choose two or more runs");
      runs.href = link("runs");
      find("status").replaceChildren(runs, " to compare them.");
      return;
    }
    tell("Comparing …");
    bar.hidden = false;
    comparison = await source.comparison(chosen, (job) => {
      tell(job.task ? `${job.task} …` : "Waiting for other work …");
      if (job.total) { bar.max = job.total; bar.value = job.done; }
    });
    runs = comparison.systems.map((name) => all.find((run) => run.name === name));
  } catch (error) { tell(error.message); return; } finally { bar.hidden = true; }
  const metrics = Object.values(comparison.metrics);
  tell(`${plural(comparison.systems.length, "run")}, ${plural(comparison.captions, "caption")} each, ${plural(metrics.length, "metric")}`);
  find("meaning").textContent = "The small number is the rank: a new one begins where a run is significantly worse than every run of the rank above. "
    + `Every pair was tested by ${comparison.permutations.toLocaleString("en")} permutations of captions; p values are corrected for the number of pairs (Holm) at `
    + `${comparison.significant_below}. Differences are to the first run, the baseline; seed ${comparison.seed}.`;

  const least = (1 + 1e-9) / (comparison.permutations + 1);
  const shownP = (difference) => difference.p_holm < 0.001 ? "p < 0.001"
    : `p ${difference.p_permutation <= least ? "≤" : "="} ${difference.p_holm.toFixed(3)}`;
  const scaled = (metric) => ({ percent: metric.shown_as_percent });
  const table = find("leaderboard"), body = table.tBodies[0], head = table.tHead.rows[0];

  function sortBy(column, descending) {
    const key = (row) => column ? Number(row.cells[column].dataset.value) : row.dataset.name;
    const order = [...body.rows].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (descending ? -1 : 1));
    body.append(...order);
    [...head.cells].forEach((cell, place) => {
      if (place === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending"); else cell.removeAttribute("aria-sort");
    });
  }
  const heading = (text, small, column) => {
    const button = make("button", "", text, small ? make("small", "", ` ${small}`) : null);
    button.type = "button";
    const cell = make("th", column ? "number" : "", button);
    cell.scope = "col";
    button.addEventListener("click", () => sortBy(column, cell.hasAttribute("aria-sort") ? cell.getAttribute("aria-sort") === "ascending" : column > 0));
    return cell;
  };
  head.append(heading("Run", "", 0), ...metrics.map((metric, place) => heading(metric.label, metric.shown_as_percent ? "×100" : "", place + 1)));
  body.append(...comparison.systems.map((name, number) => {
    const address = make("a", "", name);
    address.href = link("run", { run: runs[number].id });
    const row = make("tr", "", make("th", "", address, number ? null : make("small", "", " baseline")), ...metrics.map((metric) => {
      const system = metric.systems.find((each) => each.system === name), difference = system.difference;
      const factor = metric.shown_as_percent ? 100 : 1;
      const against = difference ? `${difference.value < 0 ? "−" : "+"}${Math.abs(factor * difference.value).toFixed(2)}, ${shownP(difference)}` : "baseline";
      const cell = make("td", `number ${difference ? difference.verdict : "same"}${system.cluster === 1 ? " best" : ""}`,
        shownScore(scaled(metric), system.score), make("sub", "", String(system.cluster)), make("span", "against", against));
      cell.dataset.value = String(metric.higher_is_better ? system.score : -system.score);
      cell.title = `95 % interval ${system.interval.map((bound) => shownScore(scaled(metric), bound)).join(" to ")}`;
      return cell;
    }));
    row.dataset.name = name;
    row.cells[0].scope = "row";
    return row;
  }));
  if (metrics.length) sortBy(1, true);
  find("errors").replaceChildren(...Object.entries(comparison.errors).map(([name, reason]) => make("p", "note", `${name} was not compared: ${reason}`)));
  find("ranking").hidden = false;

  // Captions side by side.
  const options = (select, entries, selected) => {
    select.replaceChildren(...entries.map(([value, text]) => {
      const option = make("option", "", text);
      option.value = value;
      return option;
    }));
    select.value = selected;
  };
  options(find("metric"), metrics.map((metric) => [metric.name, metric.label]), metrics[0].name);
  for (const [place, name] of ["one", "two"].entries()) options(find(name), runs.map((run) => [run.id, run.name]), runs[place].id);

  async function draw() {
    const metric = comparison.metrics[find("metric").value];
    const first = runs.find((run) => run.id === find("one").value), second = runs.find((run) => run.id === find("two").value);
    const place = (run) => run.metrics.findIndex((each) => each.name === metric.name);
    let page;
    try {
      page = await source.differences({ first: first.id, second: second.id, metric: metric.name, view: find("view").value, offset: 0, limit: count });
    } catch (error) { find("shown").textContent = error.message; return; }
    find("pairs").replaceChildren(...page.pairs.map((pair) => {
      const item = make("li");
      if (pair.first.picture) {
        const shown = caplensCards.picture(first, pair.first, `Picture ${pair.first.id}`);
        item.append(shown);
      } else item.append(make("span", "none", pair.first.id));
      for (const [run, row, better] of [[first, pair.first, pair.gap > 0], [second, pair.second, pair.gap < 0]]) {
        const text = make("p", "", row.caption || "(empty)");
        text.dir = "auto";
        item.append(make("div", better ? "side higher" : "side", make("small", "", run.name), make("b", "", shownScore(scaled(metric), row.scores[place(run)])), text));
      }
      if (pair.first.references.length) item.append(make("p", "said", `People: ${pair.first.references.slice(0, 5).join(" · ")}`));
      return item;
    }));
    find("shown").textContent = `${plural(page.total, "caption")} ${find("view").value === "differ" ? "differ" : "are better"} in ${metric.label}`;
    find("more").hidden = page.total <= count;
  }
  for (const name of ["metric", "view", "one", "two"]) find(name).addEventListener("change", () => { count = PORTION; draw(); });
  find("more").addEventListener("click", () => { count += PORTION; draw(); });
  find("pictures").hidden = !metrics.length;
  if (metrics.length) draw();
})();
