"use strict";
// Where pages get their data: from the server, or, in an export, from the files beside them.
const find = (id) => document.getElementById(id);
const link = (page, parameters) => {
  const query = new URLSearchParams(parameters).toString();
  return document.body.dataset[page] + (query ? `?${query}` : "");
};
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const shownScore = (metric, score) => score === null || score === undefined ? "–"
  : metric.percent ? (score * 100).toFixed(2) : score.toFixed(3);

class Problem extends Error {}
const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// Asks the server; when it is busy, again after as long as it said.
async function ask(path, { body, method, signal, attempts = 5 } = {}) {
  const options = { method: method || (body ? "POST" : "GET"), signal };
  if (body) Object.assign(options, { body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is it still running?");
  }
  if (answer.status === 503 && attempts > 1) {
    await pause(Math.min(10, Number(answer.headers.get("retry-after")) || 1));
    return ask(path, { body, method, signal, attempts: attempts - 1 });
  }
  if (answer.status === 401) location.assign(document.body.dataset.login);
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(content.error || `The server answered ${answer.status}.`);
  return content;
}

// Submits long work and follows it to its end; `tell` hears how far it is.
async function runJob(kind, request, tell) {
  const job = await ask("/v1/jobs", { body: { kind, request } });
  await new Promise((done, fail) => {
    const events = new EventSource(`/v1/jobs/${job.id}/events`);
    events.addEventListener("progress", (event) => tell(JSON.parse(event.data)));
    events.addEventListener("end", (event) => {
      events.close();
      const ended = JSON.parse(event.data);
      if (ended.state === "done") done(); else fail(new Problem(ended.error || `The work was ${ended.state}.`));
    });
  });
  return ask(`/v1/jobs/${job.id}/result`);
}

const serverSource = {
  runs: () => ask("/v1/runs"),
  run: (run) => ask(`/v1/runs/${run}`, { attempts: 60 }),
  captions: (run, query, signal) => ask(`/v1/runs/${run}/captions?${new URLSearchParams(query)}`, { signal }),
  details: (run, row) => Promise.resolve(row.details),
  picture: (run, row, width = 360) => `/v1/runs/${run}/pictures/${row}?width=${width}`,
  differences: (query) => ask(`/v1/differences?${new URLSearchParams(query)}`),
  comparison: (runs, tell) => runJob("compare-runs", { runs }, tell),
};

// An export: a run's rows in portions, filtered here as the server filters them.
const exportedSource = (() => {
  const LEAST_GAP = 0.00005;  // scores that are closer look alike
  const kept = new Map();
  const read = (path) => {
    if (!kept.has(path)) {
      kept.set(path, fetch(`data/${path}`).then((answer) => {
        if (!answer.ok) throw new Problem(`data/${path} is not there`);
        return answer.json();
      }));
    }
    return kept.get(path);
  };
  const rows = async (run) => {
    const { portions } = await read(`${run}/summary.json`);
    const parts = [];
    for (let number = 0; number < portions; number++) parts.push(read(`${run}/rows-${number}.json`));
    return (await Promise.all(parts)).flat();
  };
  const SHOW = {
    all: () => true, fine: (row) => row.verdict === "fine", doubtful: (row) => row.verdict === "doubtful",
    wrong: (row) => row.verdict === "wrong", "wrong-words": (row) => row.wrong_words, "left-out": (row) => row.left_out,
    unscored: (row) => Object.keys(row.failures).length > 0, empty: (row) => !row.caption.trim(),
  };
  async function captions(run, query) {
    const summary = await read(`${run}/summary.json`);
    const words = (query.words || "").toLowerCase().split(/\s+/).filter(Boolean);
    const metric = query.metric === undefined ? null : Number(query.metric);
    const low = query.low === undefined ? null : Number(query.low), high = query.high === undefined ? null : Number(query.high);
    const chosen = (await rows(run)).filter((row) => {
      const score = metric === null ? null : row.scores[metric];
      const text = [row.id, row.caption, ...row.references].join("\n").toLowerCase();
      return words.every((word) => text.includes(word)) && SHOW[query.show || "all"](row)
        && (low === null || (score !== null && score >= low)) && (high === null || (score !== null && score <= high));
    });
    if (metric !== null && query.order !== "file") {
      const sign = (query.order === "worst") === summary.metrics[metric].higher_is_better ? 1 : -1;
      const known = chosen.filter((row) => row.scores[metric] !== null).sort((a, b) => sign * (a.scores[metric] - b.scores[metric]) || a.row - b.row);
      chosen.splice(0, chosen.length, ...known, ...chosen.filter((row) => row.scores[metric] === null));
    }
    const from = Number(query.offset || 0);
    return { total: chosen.length, rows: chosen.slice(from, from + Number(query.limit || 30)) };
  }
  async function differences({ first, second, metric, view = "differ", offset = 0, limit = 20 }) {
    const [one, two] = await Promise.all([read(`${first}/summary.json`), read(`${second}/summary.json`)]);
    const place = (summary) => summary.metrics.findIndex((each) => each.name === metric);
    const [a, b] = [place(one), place(two)], sign = one.metrics[a].higher_is_better ? 1 : -1;
    const others = new Map((await rows(second)).map((row) => [row.id, row]));
    const wanted = { differ: (gap) => Math.abs(gap) > LEAST_GAP, first: (gap) => gap > LEAST_GAP, second: (gap) => gap < -LEAST_GAP }[view];
    const pairs = [];
    for (const row of await rows(first)) {
      const other = others.get(row.id);
      if (!other || row.scores[a] === null || other.scores[b] === null) continue;
      const gap = sign * (row.scores[a] - other.scores[b]);
      if (wanted(gap)) pairs.push({ first: row, second: other, gap });
    }
    pairs.sort((x, y) => Math.abs(y.gap) - Math.abs(x.gap) || x.first.row - y.first.row);
    return { total: pairs.length, pairs: pairs.slice(Number(offset), Number(offset) + Number(limit)) };
  }
  return {
    runs: () => read("runs.json"), run: (run) => read(`${run}/summary.json`), captions, differences,
    details: async (run, row) => row.explained ? (await read(`${run}/details-${row.portion}.json`))[row.row] || {} : {},
    picture: (run, row) => `data/${run}/pictures/${row}.jpg`,
    comparison: () => read("comparison.json"),
  };
})();

const source = document.body.dataset.exported === "yes" ? exportedSource : serverSource;
