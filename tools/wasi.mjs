// Runs a program for the target wasm32-wasip1 in Node. It sees the whole file system and the environment variables.
//
//     node tools/wasi.mjs PROGRAM.wasm [ARGUMENT ...]
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { WASI } from "node:wasi";

const [path, ...options] = process.argv.slice(2);
if (path === undefined || path === "-h" || path === "--help") {
  const lines = readFileSync(new URL(import.meta.url), "utf8").split("\n");
  console.log(lines.slice(0, 3).map((line) => line.replace(/^\/\/ ?/, "")).join("\n"));
  process.exit(0);
}
const wasi = new WASI({ version: "preview1", args: [path, ...options], env: process.env, preopens: { "/": "/" } });
// An old C library for WASI has no threads and no `realpath`. Then the program imports these functions. A thread cannot be started (EAGAIN).
const threads = ["attr_init", "attr_setstacksize", "attr_destroy", "join", "detach"];
const env = Object.fromEntries(threads.map((name) => [`pthread_${name}`, () => 0]));
Object.assign(env, { pthread_create: () => 6, realpath: () => 0 });
const module = await WebAssembly.compile(readFileSync(resolve(path)));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, { ...wasi.getImportObject(), env }));
