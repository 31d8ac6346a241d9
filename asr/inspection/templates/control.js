// What the pointer, the keys and the clock do to a View.
Object.assign(View.prototype, {
  listen(article) {
    this.button.onclick = () => this.toggle();
    this.words.forEach((button, index) => (button.onclick = () => this.playWord(index)));
    for (const button of article.querySelectorAll("[data-zoom]")) {
      const way = Number(button.dataset.zoom);
      button.onclick = () => this.zoomTo(way ? this.zoom * 1.6 ** way : 1);
    }
    this.scroller.onscroll = () => {
      this.draw();
      for (const view of this.peers) view.scroller.scrollLeft = this.scroller.scrollLeft;
    };
    this.scroller.onkeydown = (event) => this.key(event);
    this.canvas.onmousemove = (event) => this.hover(event);
    this.canvas.onmouseleave = () => this.leave();
    this.canvas.onclick = (event) => this.click(event);
    this.scroller.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomTo(this.zoom * Math.exp(-event.deltaY / 300), event.offsetX);
    }, { passive: false });
  },

  // Which part of the picture is at a point, and what is there.
  hit(event) {
    const x = event.offsetX, y = event.offsetY, time = this.timeAt(x);
    if (y < TOP + SOUND) return { part: "sound", time, height: (TOP + SOUND - y) / SOUND };
    if (y < MATRIX) {
      const word = this.data.words.findIndex(([, start, end]) => time >= start && time < end);
      return { part: "word", time, word };
    }
    const token = Math.floor((y - MATRIX + this.scroller.scrollTop) / this.row);
    if (y > this.height - AXIS || token >= this.data.tokens.length) return { part: "axis", time };
    return { part: x < GUTTER ? "token" : "cell", time, token };
  },

  hover(event) {
    const hit = this.hit(event);
    const clock = this.seconds(hit.time);
    const clickable = hit.token !== undefined || hit.word >= 0;
    this.canvas.style.cursor = clickable ? "pointer" : "crosshair";
    this.over = hit.token ?? null;
    let text = clock;
    if (hit.part === "cell") {
      text = `${this.data.tokens[hit.token]}   ${clock}   weight ${this.weight(hit.token, hit.time).toFixed(3)}`;
    } else if (hit.part === "token") {
      text = this.describe(hit.token);
    } else if (hit.part === "word" && hit.word >= 0) {
      const [word, from, to] = this.data.words[hit.word];
      text = `${word}   ${this.seconds(from)} – ${this.seconds(to)}`;
    } else if (hit.part === "sound" && event.offsetX >= GUTTER) {
      text = this.describeSound(hit);
    }
    this.tip.textContent = text;
    this.tip.hidden = false;
    const left = event.offsetX + 14, width = this.tip.offsetWidth;
    this.tip.style.left = `${left + width > this.width ? event.offsetX - width - 10 : left}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
    this.draw();
  },

  describeSound({ time, height }) {
    const { hertz, hop, decibels } = this.data;
    const bin = Math.min(hertz.length - 1, Math.max(0, Math.floor(height * hertz.length)));
    const level = this.spectrogram[Math.floor(time / hop + 1e-6) * hertz.length + bin] ?? 0;
    return `${this.seconds(time)}   ${Math.round(hertz[bin])} Hz   ${Math.round((level / 255 - 1) * decibels)} dB`;
  },

  describe(token) {
    const [from, to] = this.stretch(token);
    const did = this.head === "implicit" ? "depended on" : "listened to";
    return `${this.data.tokens[token]}   ${did} ${this.seconds(from)} – ${this.seconds(to)}`;
  },

  leave() {
    this.over = null;
    this.tip.hidden = true;
    this.draw();
  },

  click(event) {
    const hit = this.hit(event);
    if (hit.token !== undefined) this.playToken(hit.token, event.shiftKey);
    else if (hit.word >= 0) this.playWord(hit.word);
    else this.seek(hit.time);
  },

  key(event) {
    const last = this.data.tokens.length - 1;
    const acts = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.seek(this.cursor - 0.1),
      ArrowRight: () => this.seek(this.cursor + 0.1),
      ArrowUp: () => this.choose(Math.max(0, (this.chosen ?? 1) - 1)),
      ArrowDown: () => this.choose(Math.min(last, (this.chosen ?? -1) + 1)),
      Home: () => this.choose(0),
      End: () => this.choose(last),
      Enter: () => this.chosen !== null && this.playToken(this.chosen, event.shiftKey),
      "+": () => this.zoomTo(this.zoom * 1.6),
      "=": () => this.zoomTo(this.zoom * 1.6),
      "-": () => this.zoomTo(this.zoom / 1.6),
      0: () => this.zoomTo(1),
      Escape: () => this.choose(null),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  },

  choose(token) {
    this.chosen = token !== null && token >= 0 ? token : null;
    this.reading.textContent = this.chosen === null ? "" : this.describe(this.chosen);
    if (this.chosen !== null) this.reveal(this.chosen, this.stretch(this.chosen)[0]);
    this.draw();
  },

  playToken(token, around) {
    const [from, to] = this.stretch(token);
    const more = around ? 0.25 : 0;
    this.choose(token);
    this.player?.play(Math.max(0, from - more), to + more);
  },

  playWord(index) {
    const [word, from, to] = this.data.words[index];
    this.reading.textContent = `${word}   ${this.seconds(from)} – ${this.seconds(to)}`;
    this.chosen = null;
    this.reveal(null, from);
    this.player?.play(from, to);
  },

  toggle() {
    if (!this.player) return;
    if (this.player.playing) this.player.stop();
    else this.player.play(this.cursor >= this.data.duration - 0.02 ? 0 : this.cursor, this.data.duration);
  },

  seek(time) {
    this.cursor = Math.min(Math.max(time, 0), this.data.duration);
    if (this.player?.playing) this.player.play(this.cursor, this.data.duration);
    this.tell();
  },

  tick(time, ended) {
    if (time !== null) this.cursor = time;
    this.sounding = ended ? null : this.tokenAt(this.cursor);
    if (!ended && this.zoom > 1) this.reveal(this.sounding, this.cursor);
    this.tell(ended);
  },

  // Shows in the other views of the same sound what is heard at a moment.
  share(ended) {
    for (const view of this.peers) {
      view.cursor = this.cursor;
      view.sounding = ended ? null : view.tokenAt(this.cursor);
      view.show(ended);
    }
  },

  // Scrolls only as far as it takes to see a token and a moment.
  reveal(token, time) {
    const view = this.scroller, x = this.x(time);
    if (x < GUTTER || x > this.width - EDGE - 20) view.scrollLeft += x - GUTTER - 60;
    if (token === null) return;
    const y = this.y(token), bottom = this.height - AXIS;
    if (y < MATRIX || y + this.row > bottom) view.scrollTop += y - (MATRIX + bottom) / 2;
  },

  tell(ended = !this.player?.playing) {
    this.show(ended);
    this.button.textContent = ended ? "▶" : "❚❚";
    this.button.setAttribute("aria-label", ended ? "Play" : "Pause");
    this.share(ended);
  },

  show(ended) {
    this.clock.textContent = `${this.seconds(this.cursor)} / ${this.seconds(this.data.duration)}`;
    this.words.forEach((button, index) => {
      const [, from, to] = this.data.words[index];
      button.classList.toggle("now", !ended && this.cursor >= from && this.cursor < to);
    });
    this.draw();
  },

  seconds(time) {
    return `${(this.data.start + time).toFixed(2)} s`;
  },
});
