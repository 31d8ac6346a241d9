"use strict";

// Plays a stretch of one recording to the sample; the <audio> element it stands in for can only be
// stopped to about a frame of the screen. Times are seconds from the start of the piece.
class Player {
  static context = null;
  static current = null;

  constructor(element, tick) {
    this.element = element;
    this.tick = tick;
    this.time = 0;
    this.source = null;
    this.turn = 0;
  }

  get playing() {
    return this.source !== null;
  }

  async load() {
    Player.context ??= new AudioContext();
    if (!this.buffer) {
      const sound = bytes(this.element.getAttribute("src").split(",")[1]);
      this.buffer = await Player.context.decodeAudioData(sound.buffer);
    }
    if (Player.context.state !== "running") await Player.context.resume();
  }

  async play(from, to) {
    Player.current?.stop();
    Player.current = this;
    const turn = ++this.turn;
    await this.load();
    if (turn !== this.turn) return; // another click came while this one was loading
    const context = Player.context;
    const length = Math.max(0.02, Math.min(to, this.buffer.duration) - from);
    const begin = context.currentTime + 0.02;
    const source = context.createBufferSource();
    const gain = context.createGain();
    // A few milliseconds of fade: cutting into a wave would be heard as a click.
    const fade = Math.min(0.004, length / 4);
    gain.gain.setValueAtTime(0, begin);
    gain.gain.linearRampToValueAtTime(1, begin + fade);
    gain.gain.setValueAtTime(1, begin + length - fade);
    gain.gain.linearRampToValueAtTime(0, begin + length);
    source.buffer = this.buffer;
    source.connect(gain).connect(context.destination);
    source.start(begin, from, length);
    source.onended = () => {
      if (this.source !== source) return;
      this.source = null;
      this.tick(from + length, true);
    };
    this.source = source;
    const follow = () => {
      if (this.source !== source) return;
      const heard = context.currentTime - begin - (context.outputLatency || 0);
      this.tick(from + Math.min(Math.max(heard, 0), length), false);
      requestAnimationFrame(follow);
    };
    follow();
  }

  stop() {
    this.turn++;
    const source = this.source;
    this.source = null;
    if (source) {
      source.stop();
      this.tick(null, true);
    }
  }
}

function bytes(text) {
  const binary = atob(text);
  const array = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) array[i] = binary.charCodeAt(i);
  return array;
}

// 256 colours through the given stops, as [r, g, b, 255] x 256.
function palette(stops) {
  const rgb = stops.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const colours = new Uint8ClampedArray(1024);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (rgb.length - 1);
    const low = Math.min(Math.floor(place), rgb.length - 2);
    for (let c = 0; c < 3; c++) {
      colours[4 * i + c] = rgb[low][c] + (place - low) * (rgb[low + 1][c] - rgb[low][c]);
    }
    colours[4 * i + 3] = 255;
  }
  return colours;
}

const MAGMA = palette(["#000004", "#180f3e", "#451077", "#721f81", "#9f2f7f", "#cd4071", "#f1605d", "#fd9567", "#fec98d", "#fcfdbf"]);

// An image of width x height whose pixel (x, y) has colour level(x, y) in 0..255.
function picture(width, height, colours, level) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(width, 1);
  canvas.height = Math.max(height, 1);
  if (!width || !height) return canvas;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 4) {
      const colour = 4 * level(x, y);
      image.data[at] = colours[colour];
      image.data[at + 1] = colours[colour + 1];
      image.data[at + 2] = colours[colour + 2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
