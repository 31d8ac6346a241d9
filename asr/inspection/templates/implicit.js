// Implicit attention: what each token's probability depended on, in time and frequency.
class Implicit {
  constructor(view) {
    this.view = view;
    this.bands = view.data.implicit.bands;
    this.roots = bytes(view.data.implicit.roots);
    this.rows = this.weights();
  }

  root(token, frame, band) {
    return this.roots[(token * this.view.data.frames + frame) * this.bands + band];
  }

  // As attention over frames: for each token the roots of their power, which sum to one.
  weights() {
    const { frames, tokens } = this.view.data;
    const rows = new Float32Array(tokens.length * frames);
    for (let u = 0; u < tokens.length; u++) {
      let sum = 0;
      for (let s = 0; s < frames; s++) {
        let power = 0;
        for (let b = 0; b < this.bands; b++) power += this.root(u, s, b) ** 2;
        sum += rows[u * frames + s] = Math.sqrt(power);
      }
      for (let s = 0; s < frames && sum; s++) rows[u * frames + s] /= sum;
    }
    return rows;
  }

  // Dims the spectrogram where the token depended on nothing, and lights what it depended on most.
  glow(c, token) {
    const { frames, shift, offset, implicit } = this.view.data;
    const tall = SOUND * implicit.wide;
    for (let s = 0; s < frames; s++) {
      const left = this.view.x(offset + s * shift);
      const width = this.view.x(offset + (s + 1) * shift) - left + 0.4;
      if (left + width < GUTTER || left > this.view.width) continue;
      for (let b = 0; b < this.bands; b++) {
        const part = this.root(token, s, b) / 255, top = TOP + SOUND - (b + 1) * tall;
        for (const shade of [`rgba(4,3,10,${0.75 * (1 - part)})`, `rgba(94,234,212,${0.5 * part})`]) {
          c.fillStyle = shade;
          c.fillRect(left, top, width, tall + 0.4);
        }
      }
    }
  }
}
