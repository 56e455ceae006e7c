// Records kubectl's answers to texts, with Go: npm run record:yaml
//
// Asked are the texts that have an answer, and those of grammar.mjs; an answer that Go leaves to chance is not kept.
// @ts-check
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { makeText } from './grammar.mjs';

const made = 6000;
/** Go goes through a map in another order each time: what depends on it differs in one of so many answers. */
const times = 8;

const file = new URL('kubectl-answers.jsonl.gz', import.meta.url);
const known = gunzipSync(readFileSync(file))
  .toString()
  .trimEnd()
  .split('\n')
  .map((line) => /** @type {{ readonly text: string }} */ (JSON.parse(line)).text);
const texts = [...new Set([...known, ...Array.from({ length: made }, (_, seed) => makeText(seed))])];

const input = texts.map((text) => `${JSON.stringify(text)}\n`).join('');
const options = { cwd: fileURLToPath(new URL('recorder', import.meta.url)), input, maxBuffer: 2 ** 30 };
const [first = [], ...others] = Array.from({ length: times }, () =>
  execFileSync('go', ['run', '.'], options).toString().trimEnd().split('\n'),
);
const kept = first.filter((line, i) => others.every((answers) => answers[i] === line));
// Without the time that gzip writes, the same answers are the same bytes.
writeFileSync(file, gzipSync(`${kept.join('\n')}\n`, { level: 9 }));
console.log(`${kept.length} answers of kubectl, ${texts.length - kept.length} left to chance`);
