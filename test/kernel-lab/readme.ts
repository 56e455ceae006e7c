// Runs the commands for a node in docs/apply.md and docs/air-gapped.md as a reader would type them, in a kernel, with the bundle that the
// commands before them compiled.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { readExamples } from '../support/markdown.ts';
import { assert, startSuite } from './harness.ts';
import { run } from './network.ts';

const project = process.cwd();
const suite = startSuite('readme');
const folder = mkdtempSync(join(tmpdir(), 'kpc-readme-node-'));
const path = join(folder, 'path');
mkdirSync(path);
symlinkSync(join(project, 'fixtures'), join(folder, 'fixtures'));
for (const program of ['kpc', 'kpc-apply']) {
  const file = join(path, program);
  writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${join(project, 'bin', `${program}.js`)}" "$@"\n`);
  chmodSync(file, 0o755);
}
// Hide this machine's state folder, because the kernel is the lab's own but the files are this machine's.
mkdirSync('/var/lib/kpc', { recursive: true });
run('mount', ['-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', '/var/lib/kpc']);
const env = { ...process.env, PATH: [path, process.env['PATH']].join(delimiter), NO_COLOR: '1' };

/** Runs a script. Throws unless it ends with an allowed status. */
function shell(script: string, allowed: readonly number[] = [0]): void {
  try {
    execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { status, stderr } = error as { readonly status: number | null; readonly stderr: Buffer };
    assert(status !== null && allowed.includes(status), `${script}: status ${status}\n${String(stderr)}`);
  }
}

for (const [page, least] of [
  ['docs/apply.md', 5],
  ['docs/air-gapped.md', 5],
] as const) {
  const examples = readExamples(readFileSync(page, 'utf8'));
  // Collect the commands in the order of the page.
  const commands: string[] = [];
  for (const { commands: block } of examples) {
    if (block.words.length === 0) await suite.check(`${page} compiles and packs the bundle`, () => shell(block.text));
    if (!block.words.includes('node')) continue;
    const lines = block.text.trimEnd().split('\n');
    commands.push(...lines);
    for (const [i, command] of lines.entries()) {
      if (command === 'kpc-apply confirm') continue;
      const isToConfirm = lines[i + 1] === 'kpc-apply confirm';
      // plan ends with 1 here, because it would change something. A rollback continues after the apply before it.
      await suite.check(command, () =>
        isToConfirm ? shell(confirmed(command)) : shell(command, command.includes(' plan ') ? [1] : [0]),
      );
    }
  }
  await suite.check(`${page} has commands for a node`, () =>
    assert(commands.length > least, `${page} has too few blocks "sh node"`),
  );
}
suite.finish();

/** Returns a script with an apply that has something to do and that another session confirms as soon as it waits. */
function confirmed(apply: string): string {
  return `kpc-apply cleanup; ${apply} & for try in $(seq 20); do sleep 1; kpc-apply confirm && break; done; wait $!`;
}
