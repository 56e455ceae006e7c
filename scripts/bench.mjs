// Measures kpc, prints the figures, and writes them to docs/measurements.md with plots.
//
//   npm run bench                     all parts: about half an hour on an idle machine
//   npm run bench -- start diff       only these parts: compile, start, diff, commands, growth, large, fleet, apply
//   npm run bench -- --quick          smaller inputs, in a few minutes; writes nothing, and checks no limit
//
// Machines differ and are busy, so only ratios count. Each compares kpc with something that runs in turn with it: kube-proxy's own code
// on the same files, if KPC_ORACLE names a program that runs it (PROGRAM -case FOLDER -bench), or else Node reading the same data. The
// exit status is 1 if a limit is exceeded.
import { Cases } from './bench/cases.mjs';
import { describeMachine } from './bench/measure.mjs';
import { writePart } from './bench/page.mjs';
import { full, parts, quick } from './bench/parts.mjs';
import { isMissed, limitsTable } from './bench/words.mjs';

const isQuick = process.argv.includes('--quick');
const named = process.argv.slice(2).filter((word) => word !== '--quick');

const cases = new Cases();
const machine = `Measured on: ${describeMachine()}. Figures are medians; time is wall time, CPU is the CPU time of all threads.`;
const missed = [];
for (const part of named.length > 0 ? named : Object.keys(parts)) {
  const bench = parts[part];
  if (!bench) throw new Error(`no part ${part}: ${Object.keys(parts).join(', ')}`);
  const { text, checks, plots = new Map() } = await bench(cases, isQuick ? quick : full);
  cases.clear();
  const judged = isQuick || checks.length === 0 ? [] : [limitsTable(checks)];
  const whole = [machine, text, ...judged].join('\n\n');
  console.log(`${whole}\n`);
  if (isQuick) continue;
  missed.push(...checks.filter(isMissed));
  await writePart(part, whole, plots);
}
if (!cases.oracle)
  console.log("KPC_ORACLE names no program that runs kube-proxy's code: the limits against it are not checked.");
if (missed.length > 0) {
  console.log(`Not kept:\n${missed.map(({ what }) => `- ${what}`).join('\n')}`);
  process.exitCode = 1;
}
