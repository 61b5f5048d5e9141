"use strict";
(async () => {
  const agreement = (session) => session.alpha === null ? "no agreement yet: nobody rated the same" : `α = ${session.alpha.toFixed(2)} over ${plural(session.shared, "shared item")}`;
  try {
    const [sessions, runs] = await Promise.all([ask("/v1/sessions"), ask("/v1/runs")]);
    find("sessions").replaceChildren(...(sessions.length ? sessions.map((session) => {
      const name = make("a", "", session.name);
      name.href = link("session", { session: session.name });
      return make("p", "session", name, make("span", "note", ` ${session.kind === "rating" ? "1 to 5" : "pairs"} · ${session.runs.join(" or ")} · `
        + `${plural(session.items, "item")} · ${plural(session.judgments, "judgment")} by ${plural(Object.keys(session.raters).length, "person").replace("persons", "people")} · ${agreement(session)}`));
    }) : [make("p", "note", "None yet.")]));
    const usable = runs.filter((run) => run.state !== "failed");
    const fill = (select, first) => select.replaceChildren(...first, ...usable.map((run) => {
      const option = make("option", "", run.name);
      option.value = run.id;
      return option;
    }));
    const alone = make("option", "", "nothing: rate them from 1 to 5");
    alone.value = "";
    fill(find("first"), []);
    fill(find("second"), [alone]);
    if (!usable.length) find("problem").textContent = "There is no run to take captions from: start the server with a folder of runs.";
  } catch (error) { find("problem").textContent = error.message; }

  find("new").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!find("new").reportValidity()) return;
    const runs = [find("first").value, find("second").value].filter(Boolean);
    try {
      const session = await ask("/v1/sessions", { body: { name: find("name").value, runs, count: Number(find("count").value) } });
      location.assign(link("session", { session: session.name }));
    } catch (error) { find("problem").textContent = error.message; }
  });
})();
