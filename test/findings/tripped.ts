import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Example } from '#codes';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

/** What was said of an input. */
export interface Told {
  readonly severity: string;
  readonly text: string;
  readonly code: string;
  /** What to do. */
  readonly help: string | undefined;
}

/** All that a text of diagnostics says. */
export function readTold(stderr: string): readonly Told[] {
  const told = /(error|warning|note): (.*) \[([a-z-]+)\]$(?:\n(?! {2}help: ) .*)*(?:\n {2}help: (.*))?/gm;
  const ofText = [...stderr.matchAll(told)].map(([, severity = '', text = '', code = '', help]) => ({
    severity,
    text,
    code,
    help,
  }));
  return [...ofText, ...readAnnotations(stderr)];
}

/** The findings in what --output github prints. */
function readAnnotations(stdout: string): readonly Told[] {
  const annotation = /^::(error|warning|notice) .*?title=([a-z-]+)::(.*?)(?:%0Ahelp: (.*))?$/gm;
  return [...stdout.matchAll(annotation)].map(([, level = '', code = '', text = '', help]) => ({
    severity: level === 'notice' ? 'note' : level,
    text,
    code,
    help,
  }));
}

/** What the fixtures show, the first of each code. */
export function toldByFixtures(): ReadonlyMap<string, Told> {
  const files = readdirSync(fixturesFolder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?:diagnostics|notes|warnings(?:-\w+)?)\.txt$/.test(path))
    .toSorted();
  return firstOfEach(files.flatMap((path) => readTold(readFileSync(join(fixturesFolder, path), 'utf8'))));
}

/** What kpc says of the example of a code. A file kubectl stands in for the program. */
export async function runExample({ words, files }: Example): Promise<string> {
  const { stdout, stderr } = await inFolder(files, (cwd) => {
    const kubectl = join(cwd, 'kubectl');
    if (!existsSync(kubectl)) return runKpc(words, { cwd });
    chmodSync(kubectl, 0o755);
    return runKpc(words, { cwd, env: { PATH: [cwd, process.env['PATH']].join(delimiter) } });
  });
  // These print their findings as their result.
  return words[0] === 'lint' || words[0] === 'migrate' || words.includes('github') ? stderr + stdout : stderr;
}

/** Of all that kpc says, the first message with the code. */
export function messageOf(code: string, printed: string): string {
  const messages = printed.split(/^(?! )/m);
  const isOfCode = ([first = '']: readonly string[]) =>
    first.endsWith(` [${code}]`) || first.includes(`title=${code}::`);
  return messages.find((message) => isOfCode(message.split('\n'))) ?? '';
}

/** What kpc says about a folder with these files. */
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
