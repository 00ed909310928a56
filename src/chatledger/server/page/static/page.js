// What the page cannot do alone: keys, earlier messages on scrolling, and changes while they are written. The server
// renders all messages; this script only puts them into their places.
"use strict";

const list = document.getElementById("messages");
const announce = (text) => { document.getElementById("status").textContent = text; };
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

// --- Keys -----------------------------------------------------------------------------------------------------------

function step(by) {
  const items = [...document.querySelectorAll("article.message, .item")];
  if (!items.length) return;
  const here = document.activeElement.closest("article.message, .item");
  const seen = items.findIndex((item) => item.getBoundingClientRect().bottom > 90);
  const at = here ? items.indexOf(here) + by : seen;
  const item = items[Math.max(0, Math.min(items.length - 1, at))];
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  const act = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => document.getElementById("search")?.focus(),
    "?": () => document.getElementById("help").showModal(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// --- Fragments ------------------------------------------------------------------------------------------------------

async function fetchFragment(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  const status = response.redirected ? 401 : response.status;  // a redirection leads to the login
  if (status !== 200) throw Object.assign(new Error(`the server answered ${status}`), { status });
  const template = document.createElement("template");
  template.innerHTML = await response.text();  // from our own server, which escaped it; no script in it runs
  return template.content;
}

const fragmentAddress = (query) => {
  const given = new URLSearchParams(query);
  if (list.dataset.branch) given.set("branch", list.dataset.branch);
  return `${list.dataset.fragment}?${given}`;
};

const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 120;
let atEnd = false;  // who reads the end stays there, while messages come and images get their size
let lastTop = 0;  // where the window stood last

function toEnd() {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  lastTop = scrollY;
}

// Replaces a link to more messages by these messages. What the reader looks at stays where it is.
async function load(link) {
  if (link.dataset.loading) return;
  link.dataset.loading = "yes";
  const isEarlier = link.classList.contains("earlier");
  try {
    const fragment = await fetchFragment(link.dataset.fragment);
    fragment.querySelector(isEarlier ? ".later" : ".earlier")?.parentElement.remove();
    if (isEarlier) fragment.querySelector("#end")?.remove();
    for (const one of fragment.querySelectorAll("article")) one.classList.add("old");  // not laid out while out of sight
    const anchor = isEarlier ? link.parentElement.nextElementSibling : null;
    const before = anchor?.getBoundingClientRect().top;
    link.parentElement.replaceWith(fragment);
    if (anchor) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
    watch();
    if (document.getElementById("end")) follow();
  } catch {
    delete link.dataset.loading;  // it is still a link
  }
}

const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) load(entry.target);
}, { rootMargin: "600px" });

function watch() {
  for (const link of list.querySelectorAll(".earlier, .later")) nearby.observe(link);
}

// --- Changes --------------------------------------------------------------------------------------------------------

const FIRST_DELAY = 1000;  // milliseconds
const LONGEST_DELAY = 30000;
let source = null;
let mark = null;  // where the changes that the page has end
let delay = FIRST_DELAY;
let reopening = null;  // the timer
let ended = false;
let dirty = null;  // the lowest position from which messages have changed
let working = false;

function follow() {
  const end = document.getElementById("end");
  if (source || ended || document.hidden || !end || !list.dataset.events) return;
  clearTimeout(reopening);
  mark ??= end.dataset.mark;
  const opened = source = new EventSource(`${list.dataset.events}?${new URLSearchParams({ cursor: mark })}`);
  const on = (kind, act) => source.addEventListener(kind, (event) => {
    if (opened !== source) return;
    mark = event.lastEventId || mark;
    act(JSON.parse(event.data));
  });
  for (const kind of ["appended", "grown", "completed", "revised"]) on(kind, changed);
  on("retracted", ({ seq }) => {
    const gone = document.getElementById(`m-${seq}`);
    if (gone?.matches("article")) gone.remove();
    else if (gone) refresh(Number(gone.closest("article").dataset.seq));
  });
  on("rewound", ({ seq }) => {
    for (const one of list.querySelectorAll("article")) if (Number(one.dataset.seq) >= seq) one.remove();
    const last = [...list.querySelectorAll("article")].at(-1);
    if (last) refresh(Number(last.dataset.seq));
  });
  on("activated", () => location.reload());
  on("problem", ({ status }) => { if (status === 503) followLater(); else endChanges(); });
  source.addEventListener("open", () => { delay = FIRST_DELAY; });
  source.addEventListener("error", () => {
    // The browser reconnects by itself, except after an answer such as 502 of a proxy.
    if (opened === source && opened.readyState === EventSource.CLOSED) followLater();
  });
}

function pause() {
  clearTimeout(reopening);
  source?.close();
  source = null;
}

function followLater() {
  pause();
  reopening = setTimeout(follow, delay);
  delay = Math.min(2 * delay, LONGEST_DELAY);
}

function endChanges() {
  pause();
  ended = true;
  announce("This page no longer changes by itself");
}

// A browser has six connections to a host, for all its tabs together. A stream takes one.
document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); else if (list) follow(); });

function changed({ kind, seq, message }) {
  if (kind === "appended" && message.state === "partial") announce(`${message.role} is writing`);
  // A result stands in the message of its call.
  const within = document.getElementById(`m-${seq}`)?.closest("article");
  const caller = message.role === "tool" ? [...list.querySelectorAll("article[data-calls]")].at(-1) : null;
  refresh(Number((within ?? caller)?.dataset.seq ?? seq));
}

async function refresh(seq) {
  dirty = dirty === null ? seq : Math.min(dirty, seq);
  if (working || ended) return;
  working = true;
  let from = seq;
  try {
    while (dirty !== null) {
      from = dirty;
      dirty = null;
      put(await fetchFragment(fragmentAddress({ start: from })), from);
    }
  } catch (error) {
    if (error.status === 401 || error.status === 404) endChanges();  // logged out, or the conversation is gone
    else setTimeout(() => refresh(from), 1000);
  } finally {
    working = false;
  }
}

function put(fragment, from) {
  const articles = [...fragment.querySelectorAll("article")];
  const kept = new Set(articles.map((one) => one.id));
  const last = articles.length ? Number(articles.at(-1).dataset.seq) : from;
  for (const old of list.querySelectorAll("article")) {
    const seq = Number(old.dataset.seq);
    if (seq >= from && seq <= last && !kept.has(old.id)) old.remove();
  }
  let added = false;
  for (const one of articles) {
    const old = list.querySelector(`:scope > #${one.id}`);
    if (old) {
      if (old.isEqualNode(one)) continue;
      keepState(old, one);
      const focused = document.activeElement === old;
      const wasPartial = old.dataset.state === "partial";
      old.replaceWith(one);
      if (focused) one.focus({ preventScroll: true });
      if (wasPartial && one.dataset.state !== "partial") tell(one);
    } else {
      const next = [...list.querySelectorAll(":scope > article")].find((other) => Number(other.dataset.seq) > Number(one.dataset.seq));
      list.insertBefore(one, next ?? document.getElementById("end"));
      added = true;
      if (one.dataset.state !== "partial") tell(one);
    }
  }
  if (fragment.querySelector(".later")) refresh(last + 1);
  if (added && !atEnd) document.getElementById("newer").hidden = false;
}

const tell = (article) => announce(`${article.querySelector("h2").textContent}: ${(article.querySelector(".text")?.textContent ?? "").slice(0, 1500)}`);

function keepState(old, fresh) {
  const folds = fresh.querySelectorAll("details");
  old.querySelectorAll("details").forEach((one, at) => { if (one.open && folds[at]) folds[at].open = true; });
}

document.getElementById("newer")?.addEventListener("click", (event) => { event.target.hidden = true; toEnd(); });
addEventListener("scroll", () => {
  const up = scrollY < lastTop;
  lastTop = scrollY;
  if (isAtEnd()) {
    atEnd = true;
    const newer = document.getElementById("newer");
    if (newer) newer.hidden = true;
  } else if (up) {
    atEnd = false;  // only the reader moves up; the end may have moved since toEnd, before this event came
  }
}, { passive: true });

// --- Scores and JSON ------------------------------------------------------------------------------------------------

list?.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".score") || form.dataset.plain) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const article = form.closest("article");
  try {
    const response = await fetch(form.action, { method: "POST", body });
    if (!response.ok) throw new Error();
    form.closest("details")?.removeAttribute("open");
    await refresh(Number(article.dataset.seq));
    announce("The score is stored");
  } catch {
    form.dataset.plain = "yes";
    form.requestSubmit(event.submitter);  // with the button's value; the server's own page says why
  }
});

const SHOWN = 100000;

list?.addEventListener("toggle", async (event) => {
  const fold = event.target;
  if (!fold.matches(".raw") || !fold.open || fold.querySelector("pre")) return;
  const link = fold.querySelector("a");
  try {
    const response = await fetch(link.href);
    if (!response.ok) return;
    const text = await response.text();
    const shown = document.createElement("pre");
    shown.className = "code";
    shown.tabIndex = 0;
    shown.textContent = text.length > SHOWN ? `${text.slice(0, SHOWN)}\n…` : text;
    fold.append(shown);
  } catch { /* the link is still there */ }
}, true);

// --- Start ----------------------------------------------------------------------------------------------------------

document.getElementById("branch")?.addEventListener("change", (event) => event.target.form.requestSubmit());
if (list) {
  const { scrollHeight } = document.documentElement;
  // A page that nearly fits opens at its beginning: its end would put the first question under the bar.
  const opensAtEnd = list.dataset.newest && !location.hash && scrollHeight > 1.5 * innerHeight;
  if (opensAtEnd) toEnd();
  atEnd = opensAtEnd || scrollHeight <= innerHeight;
  let height = list.offsetHeight;
  new ResizeObserver(() => {  // it is called once at the start too, when nothing has grown
    if (atEnd && list.offsetHeight !== height) toEnd();
    height = list.offsetHeight;
  }).observe(list);
  watch();
  if (document.getElementById("end")) follow();
}
