"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 20;

  // Sorting the ranking.
  const table = document.getElementById("leaderboard"), body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const sortBy = (column, descending) => {
    const key = (row) => column === 0 ? row.dataset.name : Number(row.cells[column].dataset.value);
    const order = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
    });
    body.append(...order);
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () =>
    sortBy(column, head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : column > 0)));
  if (heads.length > 1) sortBy(1, true);

  // Pictures, side by side.
  const at = (id) => document.getElementById(id);
  let count = PAGE;
  const draw = () => {
    const metric = data.metrics[Number(at("metric").value)], view = at("view").value;
    const one = Number(at("one").value), two = Number(at("two").value), sign = metric.higherIsBetter ? 1 : -1;
    const gap = (row) => sign * (metric.scores[one][row] - metric.scores[two][row]);
    const best = (row) => Math.max(...metric.scores.map((scores) => sign * scores[row]));
    let rows = data.ids.map((_, row) => row).filter((row) => metric.scores.every((scores) => scores[row] !== null));
    if (view === "hardest") rows.sort((a, b) => best(a) - best(b));
    else if (view === "first") rows = rows.filter((row) => gap(row) > 0).sort((a, b) => gap(b) - gap(a));
    else if (view === "second") rows = rows.filter((row) => gap(row) < 0).sort((a, b) => gap(a) - gap(b));
    else rows = rows.filter((row) => gap(row) !== 0).sort((a, b) => Math.abs(gap(b)) - Math.abs(gap(a)));
    const shown = (score) => metric.percent ? (score * 100).toFixed(2) : score.toFixed(3);
    at("pairs").replaceChildren(...rows.slice(0, count).map((row) => {
      const item = make("li");
      if (row in data.pictures) {
        const image = make("img");
        image.src = data.pictures[row];
        image.alt = "Picture " + data.ids[row];
        image.loading = "lazy";
        item.append(image);
      } else item.append(make("span", "none", data.ids[row]));
      for (const system of [one, two]) {
        const other = system === one ? two : one;
        const higher = sign * metric.scores[system][row] > sign * metric.scores[other][row];
        const side = make("div", higher ? "side higher" : "side");
        side.append(make("small", "", data.systems[system]), make("b", "", shown(metric.scores[system][row])),
          make("p", "", data.captions[system][row] || "(empty)"));
        item.append(side);
      }
      if (data.references[row].length) item.append(make("p", "said", "People: " + data.references[row].join(" · ")));
      return item;
    }));
    at("shown").textContent = rows.length + (rows.length === 1 ? " picture" : " pictures") + ", of the " + data.ids.length
      + " kept on this page: the hardest, and those that systems differ on most.";
    at("more").hidden = rows.length <= count;
  };
  for (const id of ["metric", "view", "one", "two"]) at(id).addEventListener("change", () => { count = PAGE; draw(); });
  at("more").addEventListener("click", () => { count += PAGE; draw(); });
  draw();
})();
