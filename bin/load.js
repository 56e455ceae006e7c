// @ts-check
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');

/** @typedef {{ main: (args: readonly string[], terminal?: unknown) => Promise<number> }} Program */

/** @param {string} path */
function cachePath(path) {
  return path.replace(/\.js$/, '.cache');
}

/**
 * Loads a program of dist/. With the code that V8 compiled when the program was installed, most of it need not be compiled at
 * each start. V8 takes such code only from the very same V8 with the same settings. The file lies beside the program, so
 * only those who may change the program may change it.
 *
 * @param {string} path
 * @returns {Program}
 */
function load(path) {
  const cache = readCache(path);
  if (!cache) return require(path);
  const program = readFileSync(path);
  const code = cache.subarray(digestLength);
  // V8 itself compares no more than the length of the program, and crashes where its code is damaged.
  if (!digest(program, code).equals(cache.subarray(0, digestLength))) return require(path);
  return evaluate(compile(path, program.toString('latin1'), code), path);
}

/** @param {string} path */
function readCache(path) {
  try {
    return readFileSync(cachePath(path));
  } catch {
    // A program that was only built, or copied alone, has none.
    return undefined;
  }
}

/**
 * Names a program and the code that V8 made of it.
 *
 * @param {Buffer} program
 * @param {Buffer} code
 */
function digest(program, code) {
  return createHash('sha256').update(program).update(code).digest();
}

const digestLength = 32;

/**
 * @param {string} path
 * @param {string} text
 * @param {Buffer} [cachedData]
 */
function compile(path, text, cachedData) {
  // As long as the program's own first line, so that columns and lines are those of the file.
  const body = text.startsWith('#!') ? `//${text.slice(2)}` : text;
  const source = `(function (exports, require, module, __filename, __dirname) { ${body}\n})`;
  return new Script(source, { filename: path, ...(cachedData && { cachedData }) });
}

/**
 * @param {Script} script
 * @param {string} path
 * @returns {Program}
 */
function evaluate(script, path) {
  const module = { exports: {} };
  const run = script.runInThisContext();
  run(module.exports, createRequire(path), module, path, dirname(path));
  return /** @type {Program} */ (module.exports);
}

module.exports = { cachePath, compile, digest, digestLength, evaluate, load };
