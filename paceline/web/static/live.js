// Keeps a page as it is on the server: parts come as HTML, figures as data, over one stream.
"use strict";

const KEPT = new Set(["open", "checked", "aria-pressed", "aria-sort", "hidden"]); // the reader's own

// Makes `old` what `fresh` is, with as few changes as that takes: focus, ticks and what is
// selected stay where they are.
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.isEqualNode(fresh)) return;
  if (old.dataset.chart !== fresh.dataset.chart || old.dataset.part !== fresh.dataset.part) {
    old.replaceWith(fresh);
    return;
  }
  for (const { name, value } of fresh.attributes) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!KEPT.has(name) && !fresh.hasAttribute(name) && !("own" in old.dataset)) {
      old.removeAttribute(name);
    }
  }
  if (!("own" in old.dataset)) morphInside(old, fresh); // what is in there is a script's
}

function morphInside(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, n) => (n < before.length ? morph(before[n], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
}

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // escaped by the server, and scripts in it would not run
  return template.content;
}

function state() {
  const badge = document.querySelector("[data-part=state] .badge");
  return badge ? badge.textContent : "";
}

// Rows beyond the first screens come once these are drawn, or are spoken of.
function unfold() {
  const rest = document.getElementById("rest");
  if (!rest) return;
  rest.previousElementSibling.tBodies[0].append(fragment(rest.textContent));
  rest.remove();
  document.dispatchEvent(new Event("paceline:parts"));
}
window.addEventListener("load", () => requestAnimationFrame(() => setTimeout(unfold)));

function take(parts) {
  unfold();
  const before = state();
  const places = new Map();
  for (const each of document.querySelectorAll("[data-part]")) places.set(each.dataset.part, each);
  for (const [name, content] of Object.entries(parts)) {
    if (name.startsWith("figure:")) {
      if (content && window.pacelineCharts) window.pacelineCharts.tell(name.slice(7), content);
      continue;
    }
    const place = places.get(name);
    if (content === null) {
      if (place) place.remove();
    } else if (place && place.nodeName === "TR") {
      morph(place, fragment(content).firstElementChild);
    } else if (place) {
      morphInside(place, fragment(content));
    } else {
      const rows = document.querySelector(`[data-rows="${name.split(":", 1)[0]}:"]`);
      if (rows) rows.append(fragment(content));
    }
  }
  if (state() !== before) document.getElementById("told").textContent = `It is ${state()} now.`;
  document.dispatchEvent(new Event("paceline:parts"));
}

const live = document.getElementById("live");
const link = document.getElementById("link");
let stream = null;
let seen = live ? live.dataset.since : "";

function connect() {
  if (stream || !live || document.hidden) return;
  const query = new URLSearchParams({ of: live.dataset.of, since: seen });
  stream = new EventSource(`/live?${query}`);
  stream.onopen = () => say("");
  stream.onmessage = (message) => {
    seen = message.lastEventId || seen;
    take(JSON.parse(message.data));
  };
  stream.onerror = () => {
    if (stream && stream.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(connect, 3000);
    }
    say("Not connected: what is shown is as it was.");
  };
}

function disconnect() {
  if (stream) stream.close();
  stream = null;
}

function say(text) {
  if (link && link.textContent !== text) link.textContent = text;
}

// Who does not look at the page costs the run nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", connect);
connect();

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-stop]");
  if (!button || !window.confirm("Stop it? It finishes its step, scores and saves.")) return;
  const told = document.getElementById("told");
  try {
    const query = new URLSearchParams({ of: button.dataset.stop });
    const answer = await fetch(`/stop?${query}`, { method: "POST", headers: { "X-Paceline": "stop" } });
    told.textContent = (await answer.json()).said;
  } catch {
    told.textContent = "The server did not answer; is paceline serve still there?";
  }
});

// Ages are the reader's clock's business.
function ages() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const seconds = (Date.now() - Date.parse(each.dateTime)) / 1000;
    const [size, unit] = seconds < 90 ? [1, "s"] : seconds < 5400 ? [60, "min"] : seconds < 129600 ? [3600, "h"] : [86400, "days"];
    const text = Number.isFinite(seconds) ? `${Math.max(0, Math.round(seconds / size))} ${unit} ago` : each.dateTime;
    if (each.textContent !== text) each.textContent = text;
    if (!each.title) each.title = each.dateTime;
  }
}
document.addEventListener("paceline:parts", ages);
setInterval(ages, 10000);
ages();
