// The page: drawing, the loss curve and the buttons. The network and the training are in Rust (src/trainer.rs).
import init, { Training } from "./pkg/wengert_browser.js";

const EPOCHS = 30;
const FRAME = 12; // milliseconds of training between two pictures of the screen
const AVERAGE = 20; // the number of steps that a point of the curve averages
const element = (id) => document.getElementById(id);
const [drawing, curve] = [element("drawing"), element("loss")];
const [ink, chart] = [drawing.getContext("2d", { willReadFrequently: true }), curve.getContext("2d")];

let table, training, seed = 0, running = false, losses = [], seconds = 0;

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

async function decompressed(path) {
  const { body } = await fetched(path);
  return new Response(body.pipeThrough(new DecompressionStream("gzip"))).text();
}

// Shows a message, and the state of the page as attributes of the body, which the test reads.
function show(message, state = {}) {
  element("status").textContent = message;
  Object.assign(document.body.dataset, state);
}

function fail(error) {
  running = false;
  show(`Error: ${error.message ?? error}`, { state: "failed" });
}

// Runs an action of a button. An error is shown on the page.
function attempt(action) {
  return async () => {
    try {
      await action();
    } catch (error) {
      fail(error);
    }
  };
}

function report(state) {
  const accuracy = training.accuracy();
  const speed = losses.length ? `, ${((1000 * seconds) / losses.length).toFixed(2)} ms per step` : "";
  const text = `${training.epoch()} epochs, ${losses.length} steps${speed}. It reads ${(100 * accuracy).toFixed(1)} % of the test digits.`;
  show(text, { state, accuracy, steps: losses.length, milliseconds: (1000 * seconds) / Math.max(1, losses.length) });
  guess();
}

// Draws the mean losses of successive steps from 0 to ln 10, the loss of equal probabilities.
function drawLoss() {
  const { width, height } = curve;
  const means = [];
  for (let i = AVERAGE; i <= losses.length; i += AVERAGE) {
    means.push(losses.slice(i - AVERAGE, i).reduce((sum, loss) => sum + loss, 0) / AVERAGE);
  }
  chart.clearRect(0, 0, width, height);
  chart.font = "18px system-ui";
  chart.fillStyle = "#555";
  chart.strokeStyle = "#ddd";
  chart.lineWidth = 1;
  const y = (loss) => height - 30 - (loss / Math.LN10) * (height - 50);
  for (const loss of [0, 0.5, 1, 1.5, 2]) {
    chart.beginPath();
    chart.moveTo(50, y(loss));
    chart.lineTo(width, y(loss));
    chart.stroke();
    chart.fillText(loss.toFixed(1), 10, y(loss) + 6);
  }
  chart.fillText(`loss, ${losses.length} steps`, width - 200, 24);
  chart.strokeStyle = "#4477aa";
  chart.lineWidth = 2;
  chart.beginPath();
  const step = (width - 60) / Math.max(60, means.length);
  means.forEach((mean, i) => chart.lineTo(50 + step * (i + 1), y(Math.min(mean, Math.LN10))));
  chart.stroke();
}

function train() {
  if (!running) return;
  try {
    const start = performance.now();
    while (performance.now() - start < FRAME && training.epoch() < EPOCHS) losses.push(...training.steps(1));
    seconds += (performance.now() - start) / 1000;
    drawLoss();
    running = training.epoch() < EPOCHS;
    report(running ? "training" : "trained");
    if (running) requestAnimationFrame(train);
    element("train").textContent = running ? "Pause" : "Train";
  } catch (error) {
    fail(error);
  }
}

function renew() {
  running = false;
  training?.free();
  training = new Training(table, seed++);
  [losses, seconds] = [[], 0];
  element("train").textContent = "Train";
  drawLoss();
  report("ready");
}

function guess() {
  const { width, height } = drawing;
  const rgba = ink.getImageData(0, 0, width, height).data;
  const probabilities = training.guess(Uint8Array.from({ length: width * height }, (_, i) => rgba[4 * i + 3]));
  const best = probabilities.indexOf(Math.max(...probabilities));
  document.body.dataset.guess = probabilities.length ? best : "";
  for (const [digit, row] of rows.entries()) {
    const share = probabilities[digit] ?? 0;
    row.bar.style.width = `${100 * share}%`;
    row.bar.className = digit === best && share > 0 ? "bar best" : "bar";
    row.output.textContent = probabilities.length ? `${(100 * share).toFixed(1)} %` : "";
  }
}

const rows = Array.from({ length: 10 }, (_, digit) => {
  const [label, bar, output] = ["span", "div", "output"].map((tag) => document.createElement(tag));
  label.textContent = digit;
  element("guesses").append(label, bar, output);
  return { bar, output };
});

function draw(event) {
  if (!(event.buttons & 1)) return;
  const scale = drawing.width / drawing.getBoundingClientRect().width;
  const [x, y] = [event.offsetX * scale, event.offsetY * scale];
  [ink.lineWidth, ink.lineCap, ink.lineJoin] = [26, "round", "round"];
  if (event.type === "pointerdown") {
    drawing.setPointerCapture(event.pointerId);
    ink.beginPath();
    ink.moveTo(x, y);
  }
  ink.lineTo(x, y);
  ink.stroke();
  if (training) guess();
}

async function load(path) {
  training.load(new Uint8Array(await (await fetched(path)).arrayBuffer()));
  report("loaded");
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([training.save()]));
  link.download = "digits.safetensors";
  link.click();
  URL.revokeObjectURL(link.href);
}

drawing.addEventListener("pointerdown", draw);
drawing.addEventListener("pointermove", draw);
element("clear").onclick = () => {
  ink.clearRect(0, 0, drawing.width, drawing.height);
  if (training) guess();
};
element("train").onclick = () => {
  if (!running && training.epoch() >= EPOCHS) renew();
  running = !running;
  element("train").textContent = running ? "Pause" : "Train";
  if (running) requestAnimationFrame(train);
};
element("new").onclick = attempt(renew);
element("pytorch").onclick = attempt(() => load("pytorch.safetensors"));
element("save").onclick = attempt(save);

await attempt(async () => {
  [table] = await Promise.all([decompressed("digits.csv.gz"), init()]);
  renew();
  for (const id of ["train", "new", "pytorch", "save"]) element(id).disabled = false;
  document.body.dataset.loaded = performance.now(); // milliseconds since the page was requested
})();
