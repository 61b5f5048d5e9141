(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 50;
  const buttons = [...document.querySelectorAll("button.verdict")];
  const list = document.getElementById("rows"), more = document.getElementById("more"), shown = document.getElementById("shown");
  let count = PAGE;

  const draw = (row) => {
    const item = make("li"), left = make("div", "picture"), right = make("div");
    if (row.picture) {
      const image = make("img");
      image.src = row.picture;
      image.alt = row.text;
      image.loading = "lazy";
      left.append(image);
    }
    if (row.image) left.append(make("div", "", row.image.split("/").pop()));
    const head = make("div");
    head.append(make("span", `verdict ${row.verdict}`, row.verdict), make("span", "place", row.place));
    const reasons = make("ul", "reasons");
    for (const reason of row.reasons) reasons.append(make("li", reason.verdict, reason.message));
    const text = make("p", "text", row.text || "(empty)");
    text.dir = "auto";
    right.append(head, text, reasons);
    if (row.details && row.details.words) {
      const why = make("details");
      why.append(make("summary", "", "Word by word"));
      why.addEventListener("toggle", () => {
        if (why.open && why.childElementCount === 1) {
          why.append(caplensDetails.draw(row.details, { caption: row.text, picture: row.picture, references: [] }));
        }
      });
      right.append(why);
    }
    item.append(left, right);
    return item;
  };
  const redraw = () => {
    const wanted = new Set(buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.verdict));
    const rows = data.rows.filter((row) => wanted.has(row.verdict));
    list.replaceChildren(...rows.slice(0, count).map(draw));
    more.hidden = rows.length <= count;
    shown.textContent = `${Math.min(count, rows.length)} of ${rows.length} shown`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      count = PAGE;
      redraw();
    });
  }
  more.addEventListener("click", () => { count += PAGE; redraw(); });
  redraw();
})();
