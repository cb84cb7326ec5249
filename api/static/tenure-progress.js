// <tenure-progress task="01J…">: how far a background task is. One module, no imports, no build.
//
//   <script type="module" src="/my/tasks/tenure-progress.js"></script>
//   <tenure-progress task="01J…" label="Import of the north shop"></tenure-progress>
//
// Attributes: task; tenant; label (else the task's name); lang ("en", "zh"; else that of the page, else the browser's);
// theme ("light", "dark"; else the system's); base, where `app.progress` is mounted (else where this module came from).
// Events: `tenure-progress` with the task in `detail` at each change, `tenure-ended` with it once at the end.
// To fit it into a page: --tenure-accent, --tenure-good, --tenure-bad, --tenure-surface, --tenure-text, --tenure-border.
//
// All text is set as text, never as HTML. While the server cannot be heard, nothing is said to be running. A browser has six
// connections to a server over HTTP/1.1, for all its tabs: three of them at most are streams, who finds none asks every two seconds.

const SILENT_MS = 25_000; // the server says something every 15 s
const ANSWER_MS = 10_000; // and begins to answer sooner than this
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;
const LOOK_MS = 2_000;
const SEATS = 3;
const ENDED = new Set(["succeeded", "failed", "dead", "canceled"]);
const GONE = [401, 403, 404, 410];
const HERE = new URL(".", import.meta.url);

const WORDS = {
  en: {
    loading: "Loading…",
    missing: "This task is not available",
    offline: "Connection lost, trying again…",
    last: (when) => `As of ${when}`,
    waiting: "Waiting",
    pending: "Waiting to start",
    again: "Waiting to try again",
    running: "Running",
    paused: "Paused",
    succeeded: "Done",
    failed: "Failed",
    canceled: "Canceled",
    estimating: "Estimating time left…",
    longer: "Taking longer than estimated",
    left: (low, high, unit) => `${low === high ? low : `${low}–${high}`} ${unit} left`,
    clock: (low, high) => (low === high ? `ends about ${low}` : `ends ${low} – ${high}`),
    units: { second: "s", minute: "min", hour: "h", day: "days" },
    count: (done, total, unit) => `${done} of ${total}${unit ? ` ${unit}` : ""}`,
    done: (done, unit) => `${done}${unit ? ` ${unit}` : ""} done`,
    warnings: (n) => (n === 1 ? "1 warning" : `${n} warnings`),
    attempt: (n) => `attempt ${n}`,
  },
  zh: {
    loading: "正在加载…",
    missing: "此任务不可用",
    offline: "连接已断开，正在重试…",
    last: (when) => `截至 ${when}`,
    waiting: "等待中",
    pending: "等待开始",
    again: "等待重试",
    running: "运行中",
    paused: "已暂停",
    succeeded: "已完成",
    failed: "失败",
    canceled: "已取消",
    estimating: "正在估算剩余时间…",
    longer: "用时超出预计",
    left: (low, high, unit) => `剩余 ${low === high ? low : `${low}–${high}`} ${unit}`,
    clock: (low, high) => (low === high ? `预计 ${low} 结束` : `预计 ${low} – ${high} 结束`),
    units: { second: "秒", minute: "分钟", hour: "小时", day: "天" },
    count: (done, total, unit) => `${done} / ${total}${unit ? ` ${unit}` : ""}`,
    done: (done, unit) => `已完成 ${done}${unit ? ` ${unit}` : ""}`,
    warnings: (n) => `${n} 条警告`,
    attempt: (n) => `第 ${n} 次尝试`,
  },
};

const SHEET = new CSSStyleSheet();
SHEET.replaceSync(`
:host { display: block; min-width: 0;
  --accent: var(--tenure-accent, #2563eb); --good: var(--tenure-good, #15803d); --bad: var(--tenure-bad, #c02626);
  --surface: var(--tenure-surface, #fff); --text: var(--tenure-text, #1b1f27); --muted: #5b6472;
  --border: var(--tenure-border, #d9dde4); --track: #e6e9ee; }
@media (prefers-color-scheme: dark) { :host(:not([theme="light"])) {
  --accent: var(--tenure-accent, #6ea0ff); --good: var(--tenure-good, #4cc38a); --bad: var(--tenure-bad, #ff7b72);
  --surface: var(--tenure-surface, #1d2026); --text: var(--tenure-text, #e8eaee); --muted: #a3abb9;
  --border: var(--tenure-border, #343943); --track: #2f343d; } }
:host([theme="dark"]) {
  --accent: var(--tenure-accent, #6ea0ff); --good: var(--tenure-good, #4cc38a); --bad: var(--tenure-bad, #ff7b72);
  --surface: var(--tenure-surface, #1d2026); --text: var(--tenure-text, #e8eaee); --muted: #a3abb9;
  --border: var(--tenure-border, #343943); --track: #2f343d; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
.card { background: var(--surface); color: var(--text); border: 1px solid var(--border); border-radius: 12px;
  padding: 16px 18px; font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei",
  "Noto Sans CJK SC", sans-serif; font-variant-numeric: tabular-nums; }
.row { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 2px 16px; }
.title { font-weight: 600; font-size: 15px; min-width: 0; overflow-wrap: anywhere; }
.state { display: inline-flex; align-items: center; gap: 7px; font-weight: 600; color: var(--tone); white-space: nowrap; }
.state::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--tone); }
.bar { height: 8px; margin-top: 12px; border-radius: 4px; background: var(--track); overflow: hidden; }
.fill { height: 100%; width: 0; border-radius: 4px; background: var(--tone); transition: width .4s ease-out; }
[hidden] { display: none; }
.foot { margin-top: 10px; }
.bar.moving .fill { width: 30%; animation: go 1.6s ease-in-out infinite; }
@keyframes go { from { transform: translateX(-110%); } to { transform: translateX(345%); } }
.muted { color: var(--muted); }
.strong { font-weight: 600; }
.message, .error { margin-top: 6px; overflow-wrap: anywhere; display: -webkit-box; -webkit-box-orient: vertical;
  -webkit-line-clamp: 3; overflow: hidden; }
.error { margin-top: 10px; padding: 8px 12px; border-left: 3px solid var(--bad); border-radius: 4px;
  background: color-mix(in srgb, var(--bad) 9%, transparent); white-space: pre-line; -webkit-line-clamp: 6; }
.eta { display: flex; flex-wrap: wrap; gap: 0 10px; }
.message:empty, .error:empty, .counts:empty, .left:empty, .clock:empty { display: none; }
.hear { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.card { --tone: var(--muted); position: relative; }
.card[data-tone="go"] { --tone: var(--accent); }
.card[data-tone="good"] { --tone: var(--good); }
.card[data-tone="bad"] { --tone: var(--bad); }
.card[data-state="offline"] .fill { background: var(--muted); } .card[data-state="offline"] .counts { color: var(--muted); }
@media (prefers-reduced-motion: reduce) { .fill { transition: none; }
  .bar.moving .fill { animation: none; width: 100%; opacity: .3; } }
@media (forced-colors: active) { .bar { border: 1px solid; } .fill { background: Highlight; forced-color-adjust: none; } }
`);

class TenureProgress extends HTMLElement {
  static observedAttributes = ["task", "tenant", "base", "label", "lang", "theme"];

  #parts;
  #task = null;
  #trouble = "loading"; // "loading", "offline", "missing", or null while the server is heard
  #run = null; // what stops the present watching
  #skew = 0; // the server's clock minus ours
  #said = "";
  #tick = 0;
  #wake = () => this.#again();

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [SHEET];
    this.#parts = build(root);
  }

  /** The task as it was heard last, or null. */
  get value() { return this.#task; }

  connectedCallback() {
    addEventListener("online", this.#wake);
    addEventListener("offline", this.#wake);
    document.addEventListener("visibilitychange", this.#wake);
    this.#tick = setInterval(() => this.#render(), 1000);
    this.#start();
  }

  disconnectedCallback() {
    removeEventListener("online", this.#wake);
    removeEventListener("offline", this.#wake);
    document.removeEventListener("visibilitychange", this.#wake);
    clearInterval(this.#tick);
    this.#tick = 0;
    this.#stop();
  }

  attributeChangedCallback(name, before, after) {
    if (before === after || !this.#tick) return; // those it has at first are told before it is connected
    if (["task", "tenant", "base"].includes(name)) this.#start();
    else this.#render();
  }

  // -- hearing of the task ------------------------------------------------------------------------------------------

  #start() {
    this.#stop();
    this.#task = null;
    this.#trouble = this.getAttribute("task") ? "loading" : "missing";
    this.#render();
    if (this.getAttribute("task")) this.#watch();
  }

  #stop() {
    this.#run?.abort();
    this.#run = null;
  }

  /** Ask at once: the network may have come or gone, or the page may have slept. */
  #again() {
    const over = this.#trouble === null && this.#task && ENDED.has(this.#task.status);
    if (document.hidden || over || !this.getAttribute("task")) return;
    this.#stop();
    this.#watch();
  }

  #lost() {
    if (this.#task && ENDED.has(this.#task.status)) return;
    if (this.#trouble === null) this.#trouble = "offline";
    this.#render();
  }

  #url(place) {
    const named = this.getAttribute("base");
    const base = new URL(named ? named.replace(/\/?$/, "/") : HERE, document.baseURI);
    const url = new URL(`tasks/${encodeURIComponent(this.getAttribute("task"))}${place}`, base);
    const tenant = this.getAttribute("tenant");
    if (tenant) url.searchParams.set("tenant", tenant);
    return url;
  }

  /** Follow the stream, and begin again whenever it breaks, until the task has ended. */
  async #watch() {
    const run = (this.#run = new AbortController());
    let pause = FIRST_RETRY_MS;
    let first = true;
    while (!run.signal.aborted) {
      const ending = first ? await this.#look(run.signal) : await seated((seat) => this.#next(seat, run.signal));
      first = false;
      if (run.signal.aborted) return;
      if (ending === "ended") return;
      if (ending === "missing") {
        this.#task = null;
        this.#trouble = "missing";
        return this.#render();
      }
      if (ending === "heard") {
        pause = FIRST_RETRY_MS;
      } else {
        this.#lost();
        if (!this.#task) this.#trouble = "offline";
        this.#render();
        await sleep(pause * (0.75 + Math.random() / 2), run.signal);
        pause = Math.min(LAST_RETRY_MS, 2 * pause);
      }
    }
  }

  /** Follow a stream if there is a seat for one, else look after a while. Streams end now and then, which is no news. */
  async #next(seat, stopped) {
    if (!seat) await sleep(LOOK_MS, stopped);
    else if (this.#trouble === null) await sleep(FIRST_RETRY_MS / 5, stopped);
    return seat ? this.#follow(stopped) : this.#look(stopped);
  }

  /** One look at the task; answers as a stream does. */
  async #look(stopped) {
    try {
      const signal = AbortSignal.any([stopped, AbortSignal.timeout(ANSWER_MS)]);
      const answer = await fetch(this.#url(""), { credentials: "same-origin", cache: "no-store", signal });
      if (GONE.includes(answer.status)) return "missing";
      if (!answer.ok) return "silent";
      this.#set(answer);
      const task = await answer.json();
      if (!stopped.aborted) this.#heard(task);
      return ENDED.has(task.status) ? "ended" : "heard";
    } catch {
      return "silent";
    }
  }

  /** Set our clock by the server's. */
  #set(answer) {
    const now = Date.parse(answer.headers.get("date") ?? "");
    this.#skew = Number.isNaN(now) ? 0 : now - Date.now();
  }

  /** What we have seen, so that only news is sent. Of another site not asked for: it would have to allow the header. */
  #seen(url) {
    return this.#task && url.origin === location.origin ? { "last-event-id": String(this.#task.revision) } : {};
  }

  /** One stream to its end: "ended" with the task, "missing", "heard" if it broke after a word, else "silent". */
  async #follow(stopped) {
    const quiet = new AbortController();
    const stop = () => quiet.abort();
    stopped.addEventListener("abort", stop);
    let timer = setTimeout(stop, ANSWER_MS);
    let heard = false;
    try {
      const url = this.#url("/events");
      const answer = await fetch(url, {
        headers: { accept: "text/event-stream", ...this.#seen(url) }, credentials: "same-origin", cache: "no-store", signal: quiet.signal,
      });
      if (answer.status === 204) return "ended";
      if (GONE.includes(answer.status)) return "missing";
      if (!answer.ok || !answer.body) return "silent";
      this.#set(answer);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return heard ? "heard" : "silent";
        clearTimeout(timer);
        timer = setTimeout(stop, SILENT_MS);
        buffer += value;
        const events = buffer.split("\n\n");
        buffer = events.pop();
        for (const event of events) {
          if (stopped.aborted || event.startsWith("retry:")) continue;
          heard = true;
          const task = snapshot(event);
          if (!task) this.#back();
          else this.#heard(task);
          if (task && ENDED.has(task.status)) return "ended";
        }
      }
    } catch {
      return "silent";
    } finally {
      clearTimeout(timer);
      stopped.removeEventListener("abort", stop);
      quiet.abort();
    }
  }

  /** The server speaks, and has nothing newer than what we show. */
  #back() {
    if (this.#trouble !== "offline" || !this.#task) return;
    this.#trouble = null;
    this.#render();
  }

  #heard(task) {
    if (this.#task && this.#task.id === task.id && task.revision < this.#task.revision) return;
    const known = this.#task?.id === task.id && this.#task.revision === task.revision;
    this.#task = task;
    this.#trouble = null;
    this.#render();
    if (known) return;
    this.dispatchEvent(new CustomEvent("tenure-progress", { detail: task, bubbles: true, composed: true }));
    if (ENDED.has(task.status)) {
      this.dispatchEvent(new CustomEvent("tenure-ended", { detail: task, bubbles: true, composed: true }));
    }
  }

  // -- showing it ---------------------------------------------------------------------------------------------------

  #render() {
    const lang = this.#language();
    const words = WORDS[lang];
    const { card, title, state, bar, fill, foot, counts, left, clock, message, error, hear } = this.#parts;
    const task = this.#task;
    const status = this.#trouble ?? statusOf(task);
    const label = this.getAttribute("label") || task?.task || this.getAttribute("task") || "";
    const percent = task?.percent ?? null;
    const live = this.#trouble === null;

    card.lang = lang;
    card.dataset.state = status;
    card.dataset.tone = { running: "go", succeeded: "good", failed: "bad", offline: "bad" }[status] ?? "";
    write(title, label);
    write(state, words[status]);
    const amount = task ? countsOf(task, words, lang) : "";
    write(counts, amount);
    const remaining = live && task ? etaOf(task, words, lang, Date.now() + this.#skew) : null;
    write(left, remaining?.left ?? (!live && task ? words.last(time(task.updatedAt ?? task.createdAt, lang)) : ""));
    write(clock, remaining?.clock ?? "");
    foot.hidden = !(counts.textContent || left.textContent || clock.textContent);
    write(message, live && task && !ENDED.has(task.status) ? task.message : "");
    message.title = message.textContent;
    write(error, task?.error && status === "failed" ? errorOf(task.error) : "");

    bar.classList.toggle("moving", percent === null && status === "running");
    fill.style.width = percent === null ? (status === "succeeded" ? "100%" : "") : `${percent}%`;
    bar.setAttribute("aria-label", label);
    if (percent === null) bar.removeAttribute("aria-valuenow");
    else bar.setAttribute("aria-valuenow", String(percent));
    bar.setAttribute("aria-valuetext", [words[status], amount, remaining?.left].filter(Boolean).join(", "));
    bar.setAttribute("aria-busy", String(status === "running" || status === "loading"));

    const news = `${label}: ${words[status]}`;
    if (news !== this.#said) write(hear, (this.#said = news)); // a change of state is read out, not each percent
  }

  #language() {
    const named = this.getAttribute("lang") || this.closest("[lang]")?.getAttribute("lang") || navigator.language || "en";
    return /^zh\b/i.test(named) ? "zh" : "en";
  }
}

let streams = 0;

/** Do `work(true)` with a seat for a stream, of which all tabs together have a few, or `work(false)` when all are taken. */
async function seated(work) {
  if (!navigator.locks) { // a page without https: the seats of this tab only
    const seat = streams < SEATS;
    streams += seat;
    return work(seat).finally(() => { streams -= seat; });
  }
  for (let seat = 0; seat < SEATS; seat++) {
    const done = await navigator.locks.request(`tenure-progress-${seat}`, { ifAvailable: true }, async (lock) => lock && { ending: await work(true) });
    if (done) return done.ending;
  }
  return work(false);
}

function build(root) {
  const make = (name, parent, tag = "div") => {
    const part = document.createElement(tag);
    part.className = name;
    part.setAttribute("part", name);
    parent.append(part);
    return part;
  };
  const card = make("card", root);
  const head = make("row", card);
  const title = make("title", head);
  const state = make("state", head);
  const bar = make("bar", card);
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", "100");
  const fill = make("fill", bar);
  const foot = make("row foot", card);
  const counts = make("counts", foot);
  const eta = make("eta", foot);
  const left = make("left strong", eta);
  const clock = make("clock muted", eta);
  const message = make("message muted", card);
  const error = make("error", card);
  const hear = make("hear", card);
  hear.setAttribute("role", "status");
  return { card, title, state, bar, fill, foot, counts, left, clock, message, error, hear };
}

function write(part, text) {
  if (part.textContent !== text) part.textContent = text;
}

/** The task of one event, or null for what is none. */
function snapshot(event) {
  const lines = event.split("\n");
  if (lines.some((line) => line.startsWith("event:"))) return null;
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
  return data.length ? JSON.parse(data.join("\n")) : null;
}

/** Between two chunks a task waits for a moment: to who watches, it runs. */
function statusOf(task) {
  if (task.status === "dead") return "failed";
  if (task.status !== "pending") return task.status;
  if (task.chunk > 0 && !task.error) return "running";
  return task.error ? "again" : "pending";
}

function countsOf(task, words, lang) {
  const number = new Intl.NumberFormat(lang);
  const share = new Intl.NumberFormat(lang, { style: "percent", maximumFractionDigits: 1 });
  const parts = [];
  if (task.percent !== null) parts.push(share.format(task.percent / 100));
  if (task.done !== null && task.total !== null) {
    parts.push(words.count(number.format(task.done), number.format(task.total), task.unit));
  } else if (task.done !== null) {
    parts.push(words.done(number.format(task.done), task.unit));
  }
  if (task.stage && !ENDED.has(task.status)) parts.push(task.stage);
  if (task.attempt > 1) parts.push(words.attempt(task.attempt));
  if (task.warnings > 0) parts.push(words.warnings(task.warnings));
  return parts.join(" · ");
}

const UNITS = [["second", 1e3, 120e3], ["minute", 60e3, 120 * 60e3], ["hour", 3600e3, 48 * 3600e3], ["day", 86400e3, Infinity]];

/** What is left, as a range; null when there is nothing to say. */
function etaOf(task, words, lang, now) {
  if (ENDED.has(task.status) || task.status === "paused" || !task.eta) return null;
  const { low, high } = task.eta;
  if (!low || !high) return statusOf(task) === "running" ? { left: words.estimating, clock: "" } : null;
  const [least, most] = [Math.max(0, Date.parse(low) - now), Date.parse(high) - now];
  if (most <= 0) return { left: words.longer, clock: "" };
  const [unit, size] = UNITS.find(([, , limit]) => most < limit);
  const [from, to] = [Math.floor(least / size), Math.ceil(most / size)];
  return {
    left: words.left(from, to, words.units[unit]),
    // How long it waits before it works on is not in the range: then there is work left, but no time of day.
    clock: statusOf(task) === "running" ? words.clock(time(low, lang, most), time(high, lang, most)) : "",
  };
}

function errorOf(error) {
  return [error.type, error.message].filter(Boolean).join(": ");
}

/** A time of day in the reader's zone, with seconds when the end is near, with the date when it is another day's. */
function time(instant, lang, left = Infinity) {
  const at = new Date(instant);
  const today = at.toDateString() === new Date().toDateString();
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(left < 120e3 ? { second: "2-digit" } : {}) };
  return new Intl.DateTimeFormat(lang, today ? clock : { month: "short", day: "numeric", ...clock }).format(at);
}

function sleep(ms, signal) {
  return new Promise((wake) => {
    const timer = setTimeout(wake, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); wake(); }, { once: true });
  });
}

if (!customElements.get("tenure-progress")) customElements.define("tenure-progress", TenureProgress);
