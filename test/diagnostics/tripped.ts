import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';
import type { Files } from '../support/write-folder.ts';
import { inputs } from './inputs.ts';
import type { Input } from './inputs.ts';

/** What was told of an input. */
export interface Told {
  readonly severity: string;
  readonly text: string;
  readonly code: string;
}

/** All that a text of diagnostics tells. */
export function readTold(stderr: string): readonly Told[] {
  return [...stderr.matchAll(/(error|warning|note): (.*) \[([a-z-]+)\]$/gm)].map(
    ([, severity = '', text = '', code = '']) => ({ severity, text, code }),
  );
}

/** What the fixtures show, the first of each code. */
export function toldByFixtures(): ReadonlyMap<string, Told> {
  const files = readdirSync(fixturesFolder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?:diagnostics|notes|warnings(?:-\w+)?)\.txt$/.test(path))
    .toSorted();
  return firstOfEach(files.flatMap((path) => readTold(readFileSync(join(fixturesFolder, path), 'utf8'))));
}

/** What the inputs of this folder show, each for the code that it is there for. */
export async function toldByInputs(): Promise<ReadonlyMap<string, Told>> {
  const found: Told[] = [];
  for (const [code, input] of Object.entries(inputs)) {
    found.push(...readTold(await runInput(input)).filter((told) => told.code === code));
  }
  return firstOfEach(found);
}

/** What kpc says of an input. */
export async function runInput({ words = [], files }: Input): Promise<string> {
  return (await inFolder(files, (cwd) => runKpc(words, { cwd }))).stderr;
}

/** What comes of a folder with these files. */
export async function inFolder<Result>(files: Files, run: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-diagnostics-'));
  try {
    return await run(writeFolder(folder, files));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function firstOfEach(all: readonly Told[]): ReadonlyMap<string, Told> {
  return new Map(all.toReversed().map((told) => [told.code, told]));
}
