// The calculator answers while one types. Without this file all of it works as plain forms; with it the form is sent
// in the background, and the parts of the page are exchanged as they come.

const form = document.querySelector("form[data-live]");
const QUIET = { answer: 40, curves: 220, python: 300, fit: 350, certificate: 450, theorems: 600 }; // ms after the last key
const PARTS = Object.keys(QUIET).filter((part) => document.getElementById(part));
const AGAIN = 250; // ms, when the service is busy
const MOST = 20; // times asked again

let turn = 0; // every input begins a new one; answers to older ones are dropped
let going = new AbortController();

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const shown = new Map(); // parts as they were last put: what has not changed is not announced again

function put(part, html) {
  if (shown.get(part) === html) return;
  shown.set(part, html);
  document.getElementById(part).innerHTML = html;
}

/** The form as it is sent, without the file. */
function fields(part, more = {}) {
  const said = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string") said.append(name, value);
  if (more.do !== "open") said.delete("text");
  for (const [name, value] of Object.entries({ ...more, part })) said.set(name, value);
  return said;
}

/** One part of the page; null if it was overtaken. */
async function ask(part, mine, more = {}) {
  for (let times = 0; mine === turn && times < MOST; times++) {
    let answer;
    try {
      answer = await fetch(form.action, { method: "POST", body: fields(part, more), signal: going.signal });
    } catch (problem) {
      if (problem.name === "AbortError") return null;
      return { ok: false, html: '<p class="alert" role="alert">The service does not answer. Change something to ask again.</p>' };
    }
    const html = await answer.text().catch(() => null);
    if (mine !== turn || html === null) return null;
    if (answer.status === 503) {
      await wait(AGAIN);
    } else if (answer.status === 429) {
      put(part, html);
      await wait(1000 * Number(answer.headers.get("Retry-After") || 1));
    } else {
      return { ok: answer.ok, html };
    }
  }
  return null;
}

function begin() {
  going.abort();
  going = new AbortController();
  turn += 1;
  return turn;
}

/** All parts, in their order: what is quick first, and what costs more only when nobody types any more. */
async function live() {
  const mine = begin();
  const since = performance.now();
  put("calibrated", ""); // it was about another plan
  for (const part of PARTS) {
    await wait(Math.max(0, QUIET[part] - (performance.now() - since)));
    if (mine !== turn) return;
    const found = await ask(part, mine);
    if (found === null) return;
    put(part, found.html);
    if (part === "answer" && !found.ok) return outdated(true);
    if (part === "answer") outdated(false);
  }
}

/** What stands below an answer that could not be given is about an earlier plan, and is shown so. */
function outdated(is) {
  for (const part of ["curves", "theorems", "python", "fit", "certificate"])
    document.getElementById(part)?.classList.toggle("outdated", is);
}

/** Exchange the steps of the plan, and stay where one was. */
async function reshape(more = {}) {
  const mine = begin();
  const focused = document.activeElement?.id;
  const found = await ask("steps", mine, more);
  if (found === null) return;
  if (!found.ok) return put("answer", found.html);
  put("steps", found.html);
  const place = document.getElementById(focused) ?? document.querySelector("#steps fieldset:last-of-type select") ?? form;
  if (!document.activeElement || document.activeElement === document.body) place.focus();
  live();
}

async function clicked(event) {
  const button = event.target.closest("button[data-part]");
  if (!button) return;
  event.preventDefault();
  const more = { do: button.value };
  if (button.value === "open") {
    const file = document.getElementById("file").files[0];
    if (file) more.text = await file.text();
  }
  if (button.dataset.part === "steps") {
    await reshape(more);
    if (button.value.startsWith("copy") || button.value === "add") focusStep(button.value);
    return;
  }
  const found = await ask(button.dataset.part, turn, more);
  if (found) put(button.dataset.part, found.html);
}

/** After a step was added or copied, its first field. */
function focusStep(value) {
  const steps = document.querySelectorAll("#steps fieldset");
  const at = value === "add" ? steps.length - 1 : Number(value.split("-")[1]) + 1;
  steps[at]?.querySelector("select")?.focus();
}

async function copyLink() {
  const link = document.getElementById("link");
  const told = document.getElementById("copied");
  if (!link) return void (told.textContent = "This plan is too long for a link; take plan.json.");
  history.replaceState(null, "", link.hash);
  try {
    await navigator.clipboard.writeText(link.href);
    told.textContent = "Copied.";
  } catch {
    told.textContent = "The link stands in the address bar.";
  }
}

function opened() {
  const link = /^#plan=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  if (link) return openLink(link);
}

async function openLink(link) {
  const mine = begin();
  const found = await ask("steps", mine, { link });
  if (found === null) return;
  if (!found.ok) return put("answer", found.html);
  put("steps", found.html);
  for (const name of ["unit", "delta"]) {
    const said = document.querySelector(`#steps [data-${name}]`)?.dataset[name];
    if (said) document.getElementById(name).value = said;
  }
  live();
}

if (form) {
  document.documentElement.classList.add("scripted");
  document.getElementById("copy").hidden = false;
  form.addEventListener("input", (event) => {
    if (event.target.closest("[data-still], [type=file], #text")) return;
    if (event.target.matches("[data-reshape]")) reshape();
    else live();
  });
  form.addEventListener("click", clicked);
  document.getElementById("copy").addEventListener("click", copyLink);
  addEventListener("hashchange", opened);
  opened();
}
