// From the embedded data to what is seen of one utterance. Texts are only ever set as text.
const DATA = JSON.parse(document.getElementById("data").textContent);
const TWO = DATA.names.length > 1;
const KINDS = { S: "substituted", D: "deleted", I: "inserted" };

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  const { data, label, ...rest } = properties;
  Object.assign(element, rest);
  if (data) Object.assign(element.dataset, data);
  if (label) element.setAttribute("aria-label", label);
  element.append(...children);
  return element;
}

// What cannot be seen is written out; the two joiners spell words in some scripts.
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const codes = (text) => Array.from(text, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
const visible = (text) => text.replace(UNSEEN, (c) => `⟨${codes(c)[0]}⟩`);

// Different to a computer, the same to an eye: composed otherwise, or with something unseen in it.
const bare = (text) => text.normalize("NFKC").replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, "");
const alike = (a, b) => a !== b && bare(a) === bare(b);

// Steps of one system: {op, said, heard, sure}, from the packed list described in entries.py.
function unpack(utterance, system) {
  const steps = [], said = utterance.said ?? [], sure = utterance.sure?.[system] ?? [];
  let place = 0, spoken = 0;
  for (const item of utterance.heard[system] ?? []) {
    if (item === 0) steps.push({ op: "D", said: said[place++], heard: null });
    else if (typeof item === "number") {
      for (let i = 0; i < item; i++, place++) steps.push({ op: "=", said: said[place], heard: said[place], sure: sure[spoken++] });
    } else {
      const op = item[0] === "~" ? "S" : "I";
      steps.push({ op, said: op === "S" ? said[place++] : null, heard: item.slice(1), sure: sure[spoken++] });
    }
  }
  return steps;
}

// Columns that all systems share: one a reference word, and between them what any inserted.
function columns(utterance) {
  const parts = DATA.names.map((_, system) => {
    const words = [], between = [[]];
    for (const step of unpack(utterance, system)) {
      if (step.op === "I") between.at(-1).push(step);
      else { words.push(step); between.push([]); }
    }
    return { words, between };
  });
  const found = [];
  for (let place = 0; place < parts[0].between.length; place++) {
    const most = Math.max(...parts.map((part) => part.between[place].length));
    for (let i = 0; i < most; i++) found.push({ said: null, steps: parts.map((part) => part.between[place][i] ?? null) });
    if (place < parts[0].words.length) found.push({ said: parts[0].words[place].said, steps: parts.map((part) => part.words[place]) });
  }
  return found;
}

function count(utterance, system) {
  const counts = { S: 0, D: 0, I: 0, all: 0 };
  for (const item of utterance.heard[system] ?? []) {
    const kind = item === 0 ? "D" : item[0] === "~" ? "S" : item[0] === "+" ? "I" : null;
    if (kind) { counts[kind]++; counts.all++; }
  }
  return counts;
}

const spoken = {
  S: (step) => `${visible(step.said)} recognised as ${visible(step.heard)}`,
  D: (step) => `${visible(step.said)} deleted`,
  I: (step) => `${visible(step.heard)} inserted`,
  "=": (step) => `${visible(step.heard)} right`,
};

// One error: above what was said, below what was recognised, a row a system.
function chip({ said, steps }) {
  const ops = new Set(steps.map((step) => step?.op ?? ""));
  const kind = TWO ? "both" : steps[0].op;
  const box = make("span", { className: `error ${kind}` });
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", steps.map((step, i) => (TWO ? `${DATA.names[i]}: ` : "") + (step ? spoken[step.op](step) : "nothing")).join("; "));
  box.append(
    make("span", { className: "who" }),
    make("span", { className: "reference" }, make("span", { className: said === null ? "none" : ops.has("D") ? "gone" : "", dir: "auto" }, said === null ? "–" : visible(said))),
  );
  steps.forEach((step, system) => {
    const row = TWO && step && step.op !== "=" ? `row ${step.op}-row` : "";
    const who = make("span", { className: `who ${row}` }, TWO ? `${DATA.names[system]} ` : "");
    if (step && step.op !== "=") who.append(make("i", { className: `badge ${step.op}` }, step.op));
    else if (step) who.append("✓");
    const word = make("span", { className: row }, make("span", { className: step?.heard == null ? "none" : step.op, dir: "auto" }, step?.heard == null ? "–" : visible(step.heard)));
    if (step?.sure !== undefined) word.append(make("small", { title: "confidence" }, `${step.sure}%`));
    if (step?.op === "S" && alike(step.said, step.heard)) {
      const title = `${codes(step.said).join(" ")}  ≠  ${codes(step.heard).join(" ")}`;
      word.append(make("small", { className: "flag", title }, "looks the same"));
    }
    box.append(who, word);
  });
  return box;
}

function sentence(utterance) {
  const line = make("p", { className: "words", dir: "auto" });
  let run = [];
  const flush = () => { if (run.length) line.append(make("span", {}, run.join(" ")), " "); run = []; };
  for (const column of columns(utterance)) {
    if (column.steps.every((step) => step?.op === "=")) run.push(visible(column.said));
    else { flush(); line.append(chip(column), " "); }
  }
  flush();
  if (!line.childNodes.length) line.append(make("span", { className: "flag" }, "(nothing said, nothing recognised)"));
  return line;
}
