// The picture of one recording: one canvas as large as what is seen of it, redrawn as it scrolls.
const GUTTER = 74, EDGE = 14, SOUND = 150, LANE = 26, AXIS = 30, TOP = 6;
const MATRIX = TOP + SOUND + LANE, TRIM = 0.1;

class View {
  static all = [];

  constructor(article) {
    const find = (name) => article.querySelector(name);
    this.data = JSON.parse(find("script.data").textContent);
    this.article = article;
    this.pair = article.closest(".pair"); // views of one sound, which move together
    this.scroller = find(".scroller");
    this.space = find(".room");
    this.canvas = find(".room canvas");
    this.tip = find(".tip");
    this.reading = find(".reading");
    this.clock = find(".clock");
    this.button = find(".play");
    this.words = [...article.querySelectorAll(".word")];
    this.head = "mean";
    this.chosen = this.over = this.sounding = null;
    this.spectrogram = bytes(this.data.spectrogram);
    this.weights = bytes(this.data.weights);
    const audio = find("audio") ?? this.pair?.querySelector("audio");
    this.player = audio && new Player(audio, (time, ended) => this.tick(time, ended));
    const [peer] = this.peers; // made before
    this.cursor = peer?.cursor ?? 0;
    this.zoom = peer?.zoom ?? 1;
    View.all.push(this);
    if (audio) audio.hidden = true;
    find(".tools").hidden = find(".view").hidden = false;
    this.button.disabled = !audio;
    this.implicit = this.data.implicit && new Implicit(this);
    this.groups = this.group();
    this.heads(find(".heads"));
    this.listen(article);
    this.matrices = this.data.listener && new Matrices(this, find("details.listener"));
    this.paint();
    new ResizeObserver(() => this.layout()).observe(this.scroller);
    this.layout();
    this.tell();
  }

  // ---- data

  heads(label) {
    const select = label.querySelector("select");
    const { heads } = this.data;
    const labels = { mean: heads > 1 ? "mean of all" : "attention", implicit: "implicit" };
    const names = ["mean", ...(heads > 1 ? Array(heads).keys() : [])];
    if (this.implicit) names.push("implicit");
    for (const name of names) select.add(new Option(labels[name] ?? name + 1, name));
    label.hidden = names.length < 2;
    select.onchange = () => {
      this.head = names[select.selectedIndex];
      this.paint();
      this.draw();
    };
    this.useHead();
  }

  useHead() {
    const { tokens, frames, heads, scales } = this.data;
    const numbers = { mean: [...Array(heads).keys()], implicit: [] };
    const chosen = numbers[this.head] ?? [this.head];
    this.rows = new Float32Array(tokens.length * frames);
    if (this.head === "implicit") this.rows.set(this.implicit.rows);
    for (const head of chosen) {
      for (let u = 0; u < tokens.length; u++) {
        const scale = scales[head][u] / chosen.length;
        const from = (head * tokens.length + u) * frames;
        for (let s = 0; s < frames; s++) {
          this.rows[u * frames + s] += scale * (this.weights[from + s] / 255) ** 2;
        }
      }
    }
    this.most = this.rows.reduce((a, b) => Math.max(a, b), 1e-9);
  }

  // Rows too low for a label each are labelled by the words they spell: [first token, text].
  group() {
    const groups = [];
    let open = false;
    for (const [u, token] of this.data.tokens.entries()) {
      const text = token.replace(/[␣▁]/g, "");
      if (/^[␣▁]/.test(token) || /^<.+>$/.test(token)) open = false;
      if (!text) continue;
      if (open) groups[groups.length - 1][1] += text;
      else groups.push([u, text]);
      open = !/[␣▁]$/.test(token);
    }
    return groups;
  }

  weight(token, time) {
    const frame = Math.floor((time - this.data.offset) / this.data.shift + 1e-6);
    return frame < 0 || frame >= this.data.frames ? 0 : this.rows[token * this.data.frames + frame];
  }

  // What a token attended to: its peak and what adjoins it, in seconds.
  stretch(token) {
    const { frames, shift, offset, duration } = this.data;
    const row = this.rows.subarray(token * frames, (token + 1) * frames);
    if (!frames) return [offset, offset];
    let peak = 0;
    for (let s = 1; s < frames; s++) if (row[s] > row[peak]) peak = s;
    let first = peak, last = peak;
    while (first > 0 && row[first - 1] >= TRIM * row[peak]) first--;
    while (last < frames - 1 && row[last + 1] >= TRIM * row[peak]) last++;
    return [offset + first * shift, Math.min(offset + (last + 1) * shift, duration)];
  }

  // The token that listens most at a moment, if any does to speak of.
  tokenAt(time) {
    let best = null, most = 0.05;
    for (let u = 0; u < this.data.tokens.length; u++) {
      const weight = this.weight(u, time);
      if (weight > most) [best, most] = [u, weight];
    }
    return best;
  }

  // ---- geometry

  layout() {
    const { tokens } = this.data;
    const ratio = window.devicePixelRatio || 1;
    const room = Math.min(560, Math.max(300, window.innerHeight - 340));
    this.fit = Math.min(22, room / Math.max(tokens.length, 1));
    this.row = Math.max(this.fit, Math.min(22, this.fit * this.zoom));
    const seen = MATRIX + Math.max(this.fit * tokens.length, 40) + AXIS;
    this.scroller.style.height = `${Math.ceil(seen) + (this.zoom > 1 ? 16 : 0)}px`;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.span = Math.max(50, this.width - GUTTER - EDGE) * this.zoom;
    this.space.style.width = `${this.span + GUTTER + EDGE}px`;
    this.space.style.height = `${Math.max(seen, MATRIX + this.row * tokens.length + AXIS) - 1}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.ratio = ratio;
    this.draw();
  }

  x(time) {
    return GUTTER + (time / Math.max(this.data.duration, 1e-3)) * this.span - this.scroller.scrollLeft;
  }

  y(token) {
    return MATRIX + token * this.row - this.scroller.scrollTop;
  }

  timeAt(x) {
    const time = ((x - GUTTER + this.scroller.scrollLeft) / this.span) * this.data.duration;
    return Math.min(Math.max(time, 0), this.data.duration);
  }

  // The other views of the same sound.
  get peers() {
    return this.pair ? View.all.filter((view) => view !== this && view.pair === this.pair) : [];
  }

  zoomTo(zoom, x = this.width / 2, linked = true) {
    if (linked) this.peers.forEach((view) => view.zoomTo(zoom, x, false));
    const time = this.timeAt(x);
    const token = (this.height / 2 - MATRIX + this.scroller.scrollTop) / this.row;
    this.zoom = Math.min(16, Math.max(1, zoom));
    this.layout();
    this.scroller.scrollLeft += this.x(time) - x;
    this.scroller.scrollTop += this.y(token) - this.height / 2;
    this.draw();
  }

  // ---- drawing

  paint() {
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.heat = palette(this.colour("heat").split(/\s+/));
    this.useHead();
    const { tokens, frames, hertz } = this.data;
    const bins = hertz.length, length = this.spectrogram.length / bins;
    this.sound = picture(length, bins, MAGMA, (t, f) => this.spectrogram[t * bins + bins - 1 - f]);
    this.matrix = picture(frames, tokens.length, this.heat, (s, u) =>
      Math.round(255 * Math.sqrt(this.rows[u * frames + s] / this.most)));
    this.matrices?.paint(this.heat);
    const legend = this.article.querySelector(".legend canvas");
    legend.getContext("2d").drawImage(picture(120, 8, this.heat, (x) => Math.round(255 * Math.sqrt(x / 119))), 0, 0);
    this.article.querySelector(".legend .most").textContent = this.most.toFixed(2);
  }

  draw() {
    if (this.queued) return;
    this.queued = requestAnimationFrame(() => {
      this.queued = null;
      this.drawNow();
    });
  }

  drawNow() {
    const c = this.canvas.getContext("2d");
    const { shift, offset, frames, hop, tokens } = this.data;
    const bottom = this.height - AXIS, right = this.width - EDGE;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    const active = this.over ?? this.chosen;

    c.save();
    c.beginPath();
    c.rect(GUTTER, TOP, right - GUTTER, bottom - TOP);
    c.clip();
    c.fillStyle = "#000004";
    c.fillRect(GUTTER, TOP, right - GUTTER, SOUND);
    c.imageSmoothingQuality = "high";
    const length = this.sound.width * hop;
    c.drawImage(this.sound, this.x(0), TOP, this.x(length) - this.x(0), SOUND);
    if (active !== null && this.head === "implicit") this.implicit.glow(c, active);
    else if (active !== null) this.spotlight(c, active);
    this.lane(c);
    c.beginPath();
    c.rect(GUTTER, MATRIX, right - GUTTER, bottom - MATRIX);
    c.clip();
    c.imageSmoothingEnabled = this.row < 2;
    const from = this.x(offset);
    c.drawImage(this.matrix, from, this.y(0), this.x(offset + frames * shift) - from, this.row * tokens.length);
    c.restore();

    c.save();
    c.beginPath();
    c.rect(GUTTER, TOP, right - GUTTER, bottom - TOP);
    c.clip();
    for (const [, start] of this.data.words) {
      const x = Math.round(this.x(start)) + 0.5;
      this.line(c, x, TOP, x, TOP + SOUND, "rgba(255,255,255,0.28)");
      c.globalAlpha = 0.6;
      this.line(c, x, MATRIX, x, bottom, this.colour("rule"));
      c.globalAlpha = 1;
    }
    for (const token of new Set([active, this.sounding])) {
      if (token === null) continue;
      const [from, to] = this.stretch(token);
      c.strokeStyle = this.colour("accent");
      c.lineWidth = 1.5;
      if (this.row >= 4) c.strokeRect(this.x(from), this.y(token), this.x(to) - this.x(from), this.row);
      else this.line(c, GUTTER, this.y(token), right, this.y(token), this.colour("accent"));
    }
    const x = this.x(this.cursor);
    this.line(c, x, TOP, x, TOP + SOUND, "#ffffff", 1.5);
    this.line(c, x, TOP + SOUND, x, bottom, this.colour("accent"), 1.5);
    c.restore();
    this.axes(c, bottom, right, active);
  }

  // Dims the spectrogram where the token did not listen, and draws its weights as a curve.
  spotlight(c, token) {
    const { frames, shift, offset } = this.data;
    const row = this.rows.subarray(token * frames, (token + 1) * frames);
    let most = 1e-9;
    for (const weight of row) most = Math.max(most, weight);
    const base = TOP + SOUND;
    for (let s = 0; s < frames; s++) {
      const left = this.x(offset + s * shift), width = this.x(offset + (s + 1) * shift) - left;
      if (left + width < GUTTER || left > this.width) continue;
      c.fillStyle = `rgba(4,3,10,${0.72 * (1 - Math.sqrt(row[s] / most))})`;
      c.fillRect(left, TOP, width + 0.4, SOUND);
    }
    c.beginPath();
    c.moveTo(this.x(offset), base);
    for (let s = 0; s < frames; s++) {
      const height = base - (SOUND - 14) * (row[s] / most);
      c.lineTo(this.x(offset + s * shift), height);
      c.lineTo(this.x(offset + (s + 1) * shift), height);
    }
    c.lineTo(this.x(offset + frames * shift), base);
    c.strokeStyle = "#5eead4";
    c.lineWidth = 1.4;
    c.stroke();
    c.fillStyle = "rgba(94,234,212,0.14)";
    c.fill();
  }

  lane(c) {
    const top = TOP + SOUND;
    c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    let free = -Infinity;
    for (const [word, start, end] of this.data.words) {
      const left = this.x(start), right = Math.max(this.x(end), left + 2);
      const now = this.cursor >= start && this.cursor < end;
      c.fillStyle = this.colour(now ? "accent" : "faint");
      c.fillRect(left, top + 3, right - left, now ? 3 : 2);
      if (right < GUTTER || left > this.width - EDGE) continue;
      const half = c.measureText(word).width / 2 + 2;
      const middle = Math.max(GUTTER + half, Math.min(this.width - EDGE - half, (left + right) / 2));
      if (middle - half < free + 2) continue; // no room: the text above has them all
      c.fillStyle = this.colour(now ? "accent" : "ink");
      c.fillText(word, middle, top + 16);
      free = middle + half;
    }
  }

  axes(c, bottom, right, active) {
    const { hertz, tokens, duration, start } = this.data;
    c.fillStyle = this.colour("faint");
    c.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const mark of [250, 500, 1000, 2000, 4000, 8000]) {
      const above = hertz.findIndex((hz) => hz >= mark);
      if (above < 1) continue;
      const bin = above - (hertz[above] - mark) / (hertz[above] - hertz[above - 1]);
      const y = TOP + SOUND * (1 - (bin + 0.5) / hertz.length);
      c.fillText(mark < 1000 ? `${mark} Hz` : `${mark / 1000} kHz`, GUTTER - 9, y);
      this.line(c, GUTTER - 5, y, GUTTER, y, this.colour("rule"));
    }
    this.line(c, GUTTER, MATRIX, right, MATRIX, this.colour("rule"));
    this.line(c, GUTTER, bottom, right, bottom, this.colour("rule"));
    this.line(c, GUTTER, MATRIX, GUTTER, bottom, this.colour("rule"));

    c.textAlign = "center";
    c.fillStyle = this.colour("faint");
    const rough = (80 / this.span) * duration;
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60].find((s) => s >= rough) ?? 120;
    const places = step < 0.1 ? 2 : step < 1 ? 1 : 0;
    for (let tick = Math.ceil(start / step - 1e-9); tick * step <= start + duration + 1e-9; tick++) {
      const x = this.x(tick * step - start);
      if (x < GUTTER - 1 || x > right + 1) continue;
      this.line(c, x, bottom, x, bottom + 4, this.colour("rule"));
      c.fillText(`${(tick * step).toFixed(places)} s`, x, bottom + 14);
    }

    c.save();
    c.beginPath();
    c.rect(0, MATRIX, GUTTER, bottom - MATRIX);
    c.clip();
    c.textAlign = "right";
    const marked = new Set([active, this.sounding]);
    const size = Math.min(13, Math.max(10, this.row - 2));
    c.font = `${size}px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace`;
    c.fillStyle = this.colour("ink");
    let free = -Infinity;
    const near = (u) => [...marked].some((m) => m !== null && Math.abs(m - u) * this.row < size);
    for (const [u, text] of this.row >= 9.5 ? tokens.entries() : this.groups) {
      let y = this.y(u) + this.row / 2;
      if (this.row < 9.5 && u === 0) y = Math.max(y, MATRIX + size / 2 - this.scroller.scrollTop);
      if (y < MATRIX - 10 || y > bottom + 10 || y - size / 2 < free || near(u)) continue;
      c.fillText(text, GUTTER - 8, y, GUTTER - 12);
      free = this.row >= 9.5 ? -Infinity : y + size / 2 + 1;
    }
    for (const u of marked) {
      if (u === null) continue;
      const y = Math.min(Math.max(this.y(u) + this.row / 2, MATRIX + size / 2 + 1), bottom - size / 2 - 1);
      const width = Math.min(c.measureText(tokens[u]).width, GUTTER - 12) + 10;
      c.fillStyle = this.colour("accent");
      c.beginPath();
      c.roundRect(GUTTER - 3 - width, y - size / 2 - 2, width, size + 4, 4);
      c.fill();
      c.fillStyle = this.colour("card");
      c.fillText(tokens[u], GUTTER - 8, y + 0.5, GUTTER - 12);
    }
    c.restore();
  }

  line(c, x1, y1, x2, y2, colour, width = 1) {
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
  }
}
