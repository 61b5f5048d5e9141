"use strict";
(() => {
  const MOST_CAPTIONS = 4, PATIENCE = 450;
  const state = { file: null, data: null, address: null, asking: null, timer: null, size: 48 * 2 ** 20 };
  const captions = () => [...find("captions").querySelectorAll("textarea")];
  const tell = (text, wrong = false) => { find("status").textContent = text; find("status").classList.toggle("problem", wrong); };

  // Captions
  function addCaption() {
    const number = captions().length + 1;
    const area = make("textarea");
    area.rows = 2;
    area.id = `caption-${number}`;
    area.maxLength = 5000;
    area.addEventListener("input", () => later());
    const label = make("label", "field", number === 1 ? "Caption" : `Caption ${number}`);
    label.htmlFor = area.id;
    const entry = make("div", "entry", label, area);
    if (number > 1) {
      const remove = make("button", "quiet", "Remove");
      remove.type = "button";
      remove.setAttribute("aria-label", `Remove caption ${number}`);
      remove.addEventListener("click", () => { entry.remove(); number_again(); captions()[0].focus(); later(0); });
      entry.append(remove);
    }
    find("captions").append(entry);
    find("add").disabled = number >= MOST_CAPTIONS;
    return area;
  }
  function number_again() {
    captions().forEach((area, place) => {
      const entry = area.parentNode;
      area.id = `caption-${place + 1}`;
      entry.firstChild.htmlFor = area.id;
      entry.firstChild.textContent = place ? `Caption ${place + 1}` : "Caption";
      if (place) entry.lastChild.setAttribute("aria-label", `Remove caption ${place + 1}`);
    });
    find("add").disabled = captions().length >= MOST_CAPTIONS;
  }

  // The picture
  async function take(file) {
    if (!file) return;
    if (!/^(image|video)\//.test(file.type)) { tell(`${file.name} is neither a picture nor a video.`, true); return; }
    if (file.size * 4 / 3 > state.size) { tell(`${file.name} is too large: ${(file.size / 1e6).toFixed(0)} MB.`, true); return; }
    if (state.address) URL.revokeObjectURL(state.address);
    const address = await new Promise((done) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => done(reader.result));
      reader.readAsDataURL(file);
    });
    Object.assign(state, { file, data: address.slice(address.indexOf(",") + 1), address: URL.createObjectURL(file) });
    const shown = make(file.type.startsWith("video/") ? "video" : "img");
    shown.src = state.address;
    if (shown.tagName === "VIDEO") { shown.muted = true; shown.controls = true; } else shown.alt = `The chosen picture, ${file.name}`;
    find("preview").replaceChildren(shown);
    find("invite").hidden = true;
    find("clear").hidden = false;
    later(0);
  }
  function drop() {
    if (state.address) URL.revokeObjectURL(state.address);
    Object.assign(state, { file: null, data: null, address: null });
    find("file").value = "";
    find("preview").replaceChildren();
    find("invite").hidden = false;
    find("clear").hidden = true;
    later(0);
  }

  // Asking
  function later(delay = PATIENCE) {
    clearTimeout(state.timer);
    state.timer = setTimeout(judge, delay);
  }
  function request() {
    const texts = captions().map((area) => area.value.trim()).filter(Boolean);
    const references = find("references").value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!texts.length || (!state.data && !references.length)) return null;
    const body = { captions: texts, references };
    if (state.data) body[state.file.type.startsWith("video/") ? "video" : "image"] = { data: state.data, name: state.file.name.slice(0, 200) };
    return body;
  }
  async function judge() {
    if (state.asking) state.asking.abort();
    const body = request();
    if (!body) {
      const wanted = captions().some((area) => area.value.trim()) ? "Choose a picture, or give a reference." : state.data || find("references").value.trim() ? "Write a caption." : "";
      tell(wanted);
      find("answers").replaceChildren();
      find("better").hidden = find("key").hidden = true;
      return;
    }
    const asking = state.asking = new AbortController();
    tell("Looking …");
    find("answers").setAttribute("aria-busy", "true");
    const picture = state.address;
    try {
      const answer = await ask("/v1/try", { body, signal: asking.signal });
      show(answer, body, answer.frame || (body.image ? picture : null));
    } catch (error) {
      if (error.name !== "AbortError") tell(error.message, true);
    } finally {
      if (state.asking === asking) find("answers").setAttribute("aria-busy", "false");
    }
  }

  // Answers
  const TITLES = { picture: "Compared with the picture", references: "Compared with the references" };
  function scores(answer, place) {
    const list = make("dl", "marks standing");
    for (const [name, entry] of Object.entries(answer.scores.metrics)) {
      const score = entry.scores[place], share = (answer.standing[name] || [])[place];
      const known = typeof share === "number";
      const gauge = make("span", "gauge", make("i"));
      gauge.firstChild.style.width = known ? `${100 * share}%` : "0";
      if (!known) gauge.classList.add("unknown");
      const label = make("dt", "", entry.label);
      label.title = entry.signature;
      const value = make("dd", "", shownScore({ percent: entry.shown_as_percent }, score));
      const place_ = make("span", "place", known ? `better than ${Math.round(100 * share)} %` : "");
      list.append(make("div", "", label, gauge, value, place_));
    }
    const failed = Object.entries(answer.scores.errors).map(([name, reason]) => make("p", "note", `${name} was not computed: ${reason}`));
    return make("details", "all-scores", make("summary", "", "All scores"), list,
      make("p", "note", "Bars say how many captions by people score lower (Flickr8k, photos no model was trained on)."), ...failed);
  }
  function card(answer, body, place, picture) {
    const checked = answer.check.rows[place], explained = answer.explanations[place];
    const verdict = make("span", `verdict ${checked.verdict}`, checked.verdict);
    const title = make("h2", "", body.captions.length > 1 ? `Caption ${place + 1} ` : "Verdict ", verdict);
    const node = make("article", "judged", title);
    node.append(checked.reasons.length ? make("ul", "reasons", ...checked.reasons.map((reason) => make("li", reason.verdict, reason.message)))
      : make("p", "note", "Nothing speaks against it."));
    const cited = body.references.map((text) => make("li", "", text));
    for (const [name, view] of Object.entries(explained.explanations)) {
      const { notes, signature, ...details } = view;
      const drawn = caplensDetails.draw(details, { caption: explained.caption, picture: name === "picture" ? picture : null, references: name === "references" ? cited : [] });
      node.append(make("section", "view", make("h3", "", TITLES[name] || name), drawn,
        ...(name === "references" ? [make("ul", "cited", ...cited)] : []), ...notes.map((note) => make("p", "note", note))));
    }
    node.append(scores(answer, place), ...explained.notes.map((note) => make("p", "note", note)));
    return node;
  }
  function better(answer, body) {
    const votes = answer.better && Object.entries(answer.better.votes);
    find("better").hidden = !votes;
    if (!votes) return "";
    const counts = body.captions.map((_, place) => votes.filter(([, vote]) => vote === place).length);
    const most = Math.max(...counts), leading = counts.filter((count) => count === most).length === 1 ? counts.indexOf(most) : null;
    const said = leading === null ? "The metrics do not agree: as many are for one as for another."
      : `Caption ${leading + 1}: ${most} of ${plural(votes.length, "metric")} ${most === 1 ? "prefers" : "prefer"} it.`;
    const table = make("table", "votes", make("thead", "", make("tr", "", make("th", "", "Metric"), ...body.captions.map((_, place) => make("th", "number", `Caption ${place + 1}`)))),
      make("tbody", "", ...votes.map(([name, vote]) => {
        const entry = answer.scores.metrics[name];
        return make("tr", "", make("th", "", entry.label), ...entry.scores.map((score, place) => {
          const cell = make("td", place === vote ? "number chosen" : "number", shownScore({ percent: entry.shown_as_percent }, score));
          if (place === vote) cell.append(make("span", "hidden", " preferred"));
          return cell;
        }));
      })));
    for (const cell of table.querySelectorAll("thead th")) cell.scope = "col";
    for (const cell of table.querySelectorAll("tbody th")) cell.scope = "row";
    find("votes").replaceChildren(make("p", "said", said), make("div", "wide-table", table));
    return said;
  }
  function show(answer, body, picture) {
    const open = find("answers").querySelector(".all-scores[open]") !== null;
    find("answers").replaceChildren(...body.captions.map((_, place) => card(answer, body, place, picture)),
      ...answer.notes.map((note) => make("p", "note", note)));
    find("answers").classList.toggle("several", body.captions.length > 1);
    if (open) for (const panel of find("answers").querySelectorAll(".all-scores")) panel.open = true;
    const preferred = better(answer, body);
    find("key").hidden = false;
    // What a screen reader hears: short, and in words.
    const verdicts = answer.check.rows.map((row, place) => {
      const reasons = row.reasons.filter((reason) => reason.verdict !== "fine").map((reason) => reason.message).join("; ");
      return `${body.captions.length > 1 ? `Caption ${place + 1}: ` : ""}${row.verdict}${reasons ? `, ${reasons}` : ""}.`;
    });
    tell([...verdicts, preferred].filter(Boolean).join(" "));
  }

  find("file").addEventListener("change", () => take(find("file").files[0]));
  find("clear").addEventListener("click", () => { drop(); find("file").focus(); });
  find("add").addEventListener("click", () => addCaption().focus());
  find("references").addEventListener("input", () => later());
  find("ask").addEventListener("submit", (event) => { event.preventDefault(); later(0); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); later(0); }
  });
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData || {}).files || []][0];
    if (file) { event.preventDefault(); take(file); }
  });
  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      find("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("dragleave", () => find("drop").classList.remove("over"));
  addCaption();
  ask("/v1/limits").then((limits) => { state.size = limits.body_bytes; }).catch(() => {});
  if (find("file").files[0]) take(find("file").files[0]);  // kept by the browser over a reload
})();
