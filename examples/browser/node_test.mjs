// Trains the network of the page in Node, without a browser, and compares checkpoints.
//
//     node node_test.mjs PKG TABLE CHECKPOINT [EXPECTED]
//
// PKG is the folder that wasm-bindgen wrote (with `--target web`), TABLE the decompressed table, CHECKPOINT the file that PyTorch wrote.
// EXPECTED is a checkpoint of 450 steps with the seed 0 that the example `native` wrote with WENGERT_SIMD=portable. Both must have the same
// bits.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, table, checkpoint, expected] = process.argv.slice(2);
const { initSync, Training } = await import(pathToFileURL(resolve(join(pkg, "wengert_browser.js"))));
initSync({ module: readFileSync(join(pkg, "wengert_browser_bg.wasm")) });

function check(condition, text) {
  if (!condition) throw new Error(text);
}

const text = readFileSync(table, "utf8");
const training = new Training(text, 0);
const start = performance.now();
const losses = [...training.steps(450)];
const milliseconds = (performance.now() - start) / losses.length;
const mean = (part) => part.reduce((sum, loss) => sum + loss, 0) / part.length;
check(Math.abs(losses[0] - Math.LN10) < 0.5, `the first loss is ${losses[0]}`);
check(mean(losses.slice(-20)) < 0.2, `the last losses are ${losses.slice(-20)}`);
check(training.accuracy() > 0.9, `the accuracy is ${training.accuracy()}`);
console.log(`loss ${losses[0].toFixed(3)} -> ${mean(losses.slice(-20)).toFixed(3)}, accuracy ${training.accuracy().toFixed(4)}`);
console.log(`${milliseconds.toFixed(3)} ms per step`);

// A checkpoint in memory is read back, and a damaged one is an error.
const saved = training.save();
training.load(readFileSync(checkpoint));
check(training.accuracy() > 0.95, `PyTorch's network has the accuracy ${training.accuracy()}`);
training.load(saved);
check(Buffer.compare(Buffer.from(training.save()), Buffer.from(saved)) === 0, "a checkpoint that is loaded gives other bytes");
let message = "";
try {
  training.load(saved.slice(0, 100));
} catch (error) {
  message = error.message;
}
check(message.startsWith("'bytes in memory' is not a safetensors checkpoint"), `the message is "${message}"`);
message = "";
try {
  new Training("1,2\n", 0);
} catch (error) {
  message = error.message;
}
check(message === "line 1 is not 64 numbers and a digit", `the message is "${message}"`);

if (expected) {
  const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
  const [own, native] = [sha256(saved), sha256(readFileSync(expected))];
  check(own === native, `the SHA-256 of the checkpoint is ${own}, and ${native} in the native build`);
  console.log(`the checkpoint has the bits of the native build: SHA-256 ${own}`);
}
console.log("passed");
