// The listener's matrices: one square each, moments that listen downwards, what they hear across.
const SQUARE = 216, MARGIN = 34;

class Matrices {
  constructor(view, box) {
    this.view = view;
    this.reading = box.querySelector(".reading");
    this.squares = view.data.listener.map((matrix) => this.square(matrix, box.querySelector(".matrices")));
    box.ontoggle = () => this.draw();
  }

  square(matrix, home) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const canvas = document.createElement("canvas");
    caption.textContent = `${matrix.name} (to ${matrix.most.toFixed(2)})`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Self-attention of ${matrix.name}`);
    const side = SQUARE + MARGIN, ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(side * ratio);
    canvas.style.width = canvas.style.height = `${side}px`;
    figure.append(caption, canvas);
    home.append(figure);
    const square = { matrix, canvas, ratio, weights: bytes(matrix.weights), over: null };
    canvas.onmousemove = (event) => this.hover(square, event);
    canvas.onmouseleave = () => this.leave(square);
    canvas.onclick = (event) => {
      const at = this.cell(square, event);
      if (at) this.view.seek(this.time(at.column));
    };
    return square;
  }

  // The cell at a point: which moment listens (row), to which (column).
  cell({ matrix }, event) {
    const column = Math.floor(((event.offsetX - MARGIN) / SQUARE) * matrix.size);
    const row = Math.floor((event.offsetY / SQUARE) * matrix.size);
    const inside = (at) => at >= 0 && at < matrix.size;
    return inside(row) && inside(column) ? { row, column } : null;
  }

  // Seconds of the view at which a cell begins.
  time(cell) {
    return this.view.data.offset + cell * this.view.data.cell;
  }

  hover(square, event) {
    square.over = this.cell(square, event);
    square.canvas.style.cursor = square.over ? "pointer" : "default";
    this.reading.textContent = square.over ? this.describe(square) : "";
    this.drawOne(square);
  }

  leave(square) {
    square.over = null;
    this.reading.textContent = "";
    this.drawOne(square);
  }

  describe({ matrix, weights, over }) {
    const weight = matrix.most * (weights[over.row * matrix.size + over.column] / 255) ** 2;
    const [from, to] = [over.row, over.column].map((cell) => this.view.seconds(this.time(cell)));
    return `${matrix.name}   at ${from} listened to ${to}   weight ${weight.toFixed(3)}`;
  }

  paint(heat) {
    for (const square of this.squares) {
      const { size } = square.matrix;
      square.image = picture(size, size, heat, (column, row) => square.weights[row * size + column]);
    }
    this.draw();
  }

  draw() {
    this.squares.forEach((square) => this.drawOne(square));
  }

  drawOne({ canvas, image, matrix, ratio, over }) {
    const c = canvas.getContext("2d"), { view } = this;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, SQUARE + MARGIN, SQUARE + MARGIN);
    c.imageSmoothingEnabled = false;
    c.drawImage(image, MARGIN, 0, SQUARE, SQUARE);
    c.strokeStyle = view.colour("rule");
    c.strokeRect(MARGIN + 0.5, 0.5, SQUARE - 1, SQUARE - 1);
    c.fillStyle = view.colour("faint");
    c.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    for (const part of [0, 0.5, 1]) {
      const label = (view.data.start + this.time(part * matrix.size)).toFixed(1);
      c.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
      c.textBaseline = "top";
      c.fillText(label, MARGIN + part * SQUARE, SQUARE + 4);
      c.textAlign = "right";
      c.textBaseline = part === 0 ? "top" : part === 1 ? "bottom" : "middle";
      c.fillText(label, MARGIN - 4, part * SQUARE);
    }
    if (!over) return;
    const place = (cell) => ((cell + 0.5) / matrix.size) * SQUARE;
    view.line(c, MARGIN, place(over.row), MARGIN + SQUARE, place(over.row), view.colour("accent"));
    view.line(c, MARGIN + place(over.column), 0, MARGIN + place(over.column), SQUARE, view.colour("accent"));
  }
}
