// What the pages can do without this script, they do; it spares loading them again.
"use strict";

const base = document.body.dataset.base;
const $ = (id) => document.getElementById(id);

// The list: filter as one types.
for (const form of document.querySelectorAll("form[data-live]")) {
  let timer;
  let asked = 0;
  const refresh = async () => {
    const mine = ++asked;
    const query = new URLSearchParams(new FormData(form)).toString();
    const answer = await fetch(`${base}/?${query}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = page.getElementById(form.dataset.live);
    if (mine === asked && part) {
      $(form.dataset.live).replaceChildren(...part.childNodes);
      history.replaceState(null, "", `?${query}`);
      picking();
      saving($(form.dataset.live));
    }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 150); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); refresh(); });
}

// The list: two runs must be ticked.
function picking() {
  for (const form of document.querySelectorAll("form[data-pick]")) {
    const boxes = [...form.querySelectorAll("input[type=checkbox]")];
    const update = () => {
      const n = boxes.filter((box) => box.checked).length;
      form.querySelector("button:not([type=button])").disabled = n !== 2;
      $("picked").textContent = n === 2 ? "" : `${n} of 2 ticked`;
    };
    form.addEventListener("change", update);
    update();
  }
}
picking();

async function jobState() {
  const answer = await fetch(`${base}/measure/state`);
  return answer.ok ? answer.json() : null;
}

// Measuring: live progress.
const job = $("job");
if (job) {
  const words = { running: "Measuring.", stopping: "Stopping: what was measured is kept." };
  // Figures so far are made by the server, and asked for when there are new ones. Drawing them takes CPU time from what
  // is measured, so not more often than this.
  const DRAW_MS = 1500;
  let told = 0, drawn = 0;
  const draw = async (s) => {
    if (s.told === told || (s.phase === "running" && Date.now() - drawn < DRAW_MS)) return;
    [told, drawn] = [s.told, Date.now()];
    const answer = await fetch(`${base}/measure/sofar`);
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Who reads further down goes on reading there.
    const rows = () => $("job-live").querySelector(".so-far .scroll");
    const from = rows()?.scrollTop ?? 0;
    $("job-live").replaceChildren(...part.body.childNodes);
    if (rows()) rows().scrollTop = from;
  };
  const show = (s) => {
    job.hidden = false;
    job.dataset.phase = s.phase;
    $("job-what").textContent = s.what;
    const ended = s.well ? "Done."
      : s.run ? "Ended before all was measured, or something failed; the run says what." : "Nothing was measured.";
    const phase = words[s.phase] || ended;
    if ($("job-phase").textContent !== phase) $("job-phase").textContent = phase;
    $("job-done").value = s.phase === "ended" && s.well ? 1 : s.done;
    $("job-doing").textContent = s.doing;
    // Told from a twentieth on: the beginning says little of the rest.
    const left = s.phase === "running" && s.done >= 0.05
      ? `, about ${Math.round((s.seconds * (1 - s.done)) / s.done)} s left` : "";
    $("job-seconds").textContent = `${Math.round(s.seconds)} s${left}`;
    $("job-notes").replaceChildren(...s.notes.map((note) => {
      const li = document.createElement("li");
      li.textContent = note;
      return li;
    }));
    if (s.run && !$("job-run").firstElementChild) {
      const a = document.createElement("a");
      a.href = `${base}/run/${encodeURIComponent(s.run)}`;
      a.textContent = "To the run";
      $("job-run").replaceChildren(a);
    }
    $("job-stop").disabled = $("job-stop").hidden = s.phase === "ended";
  };
  const poll = async () => {
    const s = await jobState().catch(() => undefined);
    // It ended with the process that served the page, if nothing is known of it.
    if (s === null) { location.reload(); return; }
    if (s) {
      show(s);
      await draw(s).catch(() => null);
    }
    if (!s || s.phase !== "ended") { setTimeout(poll, 500); return; }
    // Who watched it to its end wants to see what came of it.
    if (s.well && s.run) location.assign(`${base}/run/${encodeURIComponent(s.run)}`);
  };
  if (job.dataset.phase === "running" || job.dataset.phase === "stopping") poll();
}
for (const form of document.querySelectorAll("form[data-stop]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fetch(form.action, { method: "POST", headers: { Accept: "application/json" } });
  });
}

// The calculator: what follows from the fields is the server's to calculate.
const calculator = document.querySelector("[data-calculator]");
if (calculator) {
  const form = calculator.querySelector("form.given");
  let asked = 0;
  const update = async () => {
    const mine = ++asked;
    const answer = await fetch(`${base}/zerofill/solved?${new URLSearchParams(new FormData(form))}`);
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine === asked && answer.ok) $("solved").replaceChildren(...part.body.childNodes);
  };
  const fill = (texts) => {
    form.querySelectorAll("input").forEach((input, i) => { input.value = texts[i]; });
    update();
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
  for (const preset of calculator.querySelectorAll("[data-preset]")) {
    preset.addEventListener("click", (event) => { event.preventDefault(); fill(preset.dataset.preset.split(",")); });
  }

  const timing = calculator.querySelector("form[data-timing]");
  if (timing) {
    const say = (text) => { $("timing-status").textContent = text; };
    const buttons = (running) => { $("take").disabled = running; $("take-stop").disabled = !running; };
    buttons(false);
    // A loop ends with its tab: who leaves this page, or closes it, is taken to be done.
    let looping = null;
    addEventListener("pagehide", () => {
      if (looping !== null) navigator.sendBeacon(`${base}/measure/stop?job=${looping}`);
    });
    const follow = async (number) => {
      const s = await jobState().catch(() => undefined);
      if (s === null) {
        looping = null;
        say("The measurement has ended, because the page broke off.");
        return buttons(false);
      }
      // Another window's measurement is none of ours.
      if (s && s.job !== number) return buttons(false);
      if (s && s.timings.length === 4) {
        fill(s.figures);
        const widest = Math.max(...s.timings.map((e) => (e.high - e.low) / 2 / e.value)) * 100;
        const certain = widest <= 100
          ? `each within ± ${widest.toFixed(1)} %` : "too few yet to say how certain they are";
        say(`Round ${s.round}, in nanoseconds, ${certain}.`);
      }
      if (s && s.phase === "ended") {
        looping = null;
        if (s.timings.length !== 4) say(s.notes.length ? s.notes[s.notes.length - 1] : "Nothing was measured.");
        return buttons(false);
      }
      setTimeout(() => follow(number), 300);
    };
    timing.addEventListener("submit", async (event) => {
      event.preventDefault();
      const headers = { Accept: "application/json" };
      if (event.submitter === $("take-stop")) {
        await fetch(`${base}/measure/stop`, { method: "POST", headers });
        return;
      }
      buttons(true);
      say("Measuring.");
      const answer = await fetch(timing.action, {
        method: "POST", headers, body: new URLSearchParams(new FormData(timing)),
      });
      const { job: number, error } = await answer.json();
      if (error) { say(error); buttons(false); return; }
      if ($("repeat").checked) looping = number;
      follow(number);
    });
  }
}
