// The list of utterances: what is asked for, in what order, drawn as it comes into view.
(() => {
  const PAGE = 40;
  const by = (id) => document.getElementById(id);
  const list = by("list"), more = by("more"), search = by("search"), kind = by("kind"), order = by("order"), picked = by("picked");
  const groups = by("groups").querySelector("select");
  const all = DATA.utterances;
  all.forEach((utterance) => {
    utterance.counts = DATA.names.map((_, system) => count(utterance, system));
    utterance.errors = utterance.counts.reduce((sum, counts) => sum + counts.all, 0);
    utterance.words = utterance.said?.length ?? 0;
  });
  let pick = null, shown = [], drawn = 0;

  const errors = (u, system) => u.counts[system].all;
  const gap = (u) => (TWO ? errors(u, 1) - errors(u, 0) : 0);
  const any = (op) => (u) => u.counts.some((counts) => counts[op]);
  const [first, second] = DATA.names;
  const kinds = [
    ["all", "all", () => true],
    ...(TWO ? [
      ["differ", "they differ", (u) => gap(u)],
      ["second", `${second} better`, (u) => gap(u) < 0],
      ["first", `${first} better`, (u) => gap(u) > 0],
    ] : []),
    ["errors", "with errors", (u) => u.errors],
    ["S", "with substitutions", any("S")],
    ["D", "with deletions", any("D")],
    ["I", "with insertions", any("I")],
    ["none", "without errors", (u) => !u.errors],
  ];
  // Equal ones stay in the order of their ids, as sorting is stable.
  const orders = [
    ...(TWO ? [["differ", "where they differ most", (u) => -Math.abs(gap(u)) - u.errors / 1e6]] : []),
    ["errors", "most errors", (u) => -u.errors],
    ...(TWO ? DATA.names.map((name, i) => [`errors${i}`, `most errors of ${name}`, (u) => -errors(u, i)]) : []),
    ["rate", "highest rate", (u) => -u.errors / (u.words || 0.5)],
    ["words", "most words", (u) => -u.words],
    ...(all.some((u) => u.seconds) ? [["seconds", "longest", (u) => -(u.seconds ?? 0)]] : []),
    ["id", "id", () => 0],
  ];
  const options = (select, choices) => choices.forEach(([value, text]) => select.append(new Option(text, value)));
  options(kind, kinds);
  options(order, orders);
  const names = [...new Set(all.map((u) => u.group).filter(Boolean))].sort();
  if (names.length > 1) {
    options(groups, [["", "all"], ...names.map((name) => [name, visible(name)])]);
    by("groups").hidden = false;
  }

  const haystack = (u) => (u.text ??= [
    u.id, (u.said ?? []).join(" "), ...DATA.names.map((_, i) => unpack(u, i).filter((s) => s.heard !== null).map((s) => s.heard).join(" ")),
  ].join("\n").toLowerCase());
  const chosen = (u) => {
    const [said, heard] = DATA.common[pick.op][pick.index];
    return DATA.names.some((_, i) => unpack(u, i).some((s) => s.op === pick.op && s.said === said && s.heard === heard));
  };

  function update() {
    const wanted = search.value.trim().toLowerCase().replace(/\s+/g, " ");
    const test = kinds.find(([value]) => value === kind.value)[2];
    const rank = orders.find(([value]) => value === order.value)[2];
    shown = all
      .filter((u) => test(u) && (!groups.value || u.group === groups.value) && (!wanted || haystack(u).includes(wanted)) && (!pick || chosen(u)))
      .map((u) => [rank(u), u]).sort((a, b) => a[0] - b[0]).map(([, u]) => u);
    by("found").textContent = `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} utterances`;
    picked.hidden = !pick;
    if (pick) {
      const [said, heard] = DATA.common[pick.op][pick.index];
      picked.textContent = `${pick.op}: ${[said, heard].filter((w) => w !== null && w !== undefined).map(visible).join(" → ")} ✕`;
      picked.setAttribute("aria-label", `Only ${picked.textContent.slice(0, -2)}; show all again`);
    }
    list.replaceChildren();
    drawn = 0;
    draw();
  }

  function draw() {
    list.append(...shown.slice(drawn, drawn + PAGE).map(article));
    drawn = Math.min(shown.length, drawn + PAGE);
    more.hidden = drawn >= shown.length;
    // On paper there is no list to go on with: what was in view is printed, and says so.
    by("printed").textContent = more.hidden ? "" : `The first ${drawn.toLocaleString("en")} of ${shown.length.toLocaleString("en")} utterances.`;
    more.textContent = `Show more (${(shown.length - drawn).toLocaleString("en")})`;
  }

  function article(utterance) {
    const header = make("header", {}, make("h3", { dir: "auto" }, visible(utterance.id)));
    const sound = SOUND.button(utterance);
    if (sound) header.append(sound);
    utterance.counts.forEach((counts, system) => {
      const rate = make("span", { className: "rate" }, TWO ? `${DATA.names[system]} ` : "", make("b", {}, `${counts.all}`), counts.all === 1 ? " error" : " errors");
      if (utterance.words) rate.append(` (${((100 * counts.all) / utterance.words).toFixed(1)} %)`);
      const parts = ["S", "D", "I"].filter((op) => counts[op]).map((op) => `${counts[op]} ${op}`);
      if (parts.length) rate.append(` ${parts.join(" ")}`);
      header.append(rate);
    });
    const facts = [`${utterance.words} ${utterance.words === 1 ? "word" : "words"}`];
    if (utterance.seconds !== undefined) facts.push(`${utterance.seconds.toFixed(1)} s`);
    if (utterance.group) facts.push(visible(utterance.group));
    if (utterance.speaker) facts.push(visible(utterance.speaker));
    header.append(make("span", {}, facts.join(" · ")));
    for (const system of utterance.missing ?? []) header.append(make("span", { className: "flag" }, `⚠ ${TWO ? `${DATA.names[system]}: ` : ""}no hypothesis`));
    if (!utterance.words) header.append(make("span", { className: "flag" }, "⚠ empty reference"));
    const made = make("article", { className: "utterance", tabIndex: -1, data: { id: utterance.id } }, header, sentence(utterance));
    if (utterance.given) made.append(given(utterance));
    return made;
  }

  function given(utterance) {
    const rows = ["said", ...DATA.names.map((name) => (TWO ? name : "recognised"))];
    return make("details", { className: "given" }, make("summary", {}, "As given"), make("dl", {},
      ...rows.map((name, i) => make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, utterance.given[i] === null ? "–" : visible(utterance.given[i]))))));
  }

  const step = (way) => {
    const articles = [...list.children], at = articles.indexOf(document.activeElement?.closest(".utterance"));
    if (way > 0 && at === articles.length - 1) draw();
    const next = list.children[Math.max(0, at + way)];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "center" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select");
    if (event.key === "Escape") { search.value = ""; pick = null; update(); search.blur(); }
    else if (typing) return;
    else if (event.key === "/") { event.preventDefault(); search.focus(); }
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "p") document.activeElement?.closest(".utterance")?.querySelector(".play")?.click();
  });
  let waiting;
  search.oninput = () => { clearTimeout(waiting); waiting = setTimeout(update, 120); };
  for (const select of [kind, order, groups]) select.onchange = update;
  picked.onclick = () => { pick = null; update(); };
  document.querySelectorAll(".pick").forEach((button) => (button.onclick = () => {
    pick = { op: button.dataset.op, index: Number(button.dataset.index) };
    update();
    by("tools").scrollIntoView({ block: "start" });
  }));
  more.onclick = draw;
  new IntersectionObserver((entries) => { if (entries[0].isIntersecting && drawn < shown.length) draw(); }, { rootMargin: "600px" }).observe(more);

  const steps = (op, said, heard) => DATA.names.map((_, i) => (i && op !== "D" ? { op: "=", said, heard: said } : { op, said, heard }));
  by("legend").append(...[["S", "word", "ward"], ["D", "word", null], ["I", null, "word"]].map(([op, said, heard]) =>
    make("span", {}, chip({ said, steps: TWO ? steps(op, said, heard).map((s, i) => (op === "I" && i ? null : s)) : steps(op, said, heard) }), ` ${KINDS[op]}`)),
    make("span", {}, TWO ? "above: what was said; below: what each recognised" : "above: what was said; below: what was recognised"));
  by("legend").hidden = by("tools").hidden = false;
  update();
})();
