// README's commands for a node, as its reader would type them: in a kernel, with the bundle that the commands before them
// have compiled.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { assert, startSuite } from './harness.ts';

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
const env = { ...process.env, PATH: [path, process.env['PATH']].join(delimiter), NO_COLOR: '1' };

/** Ends quietly with status 0, or throws. */
function shell(script: string, allowed: readonly number[] = [0]): void {
  try {
    execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { status, stderr } = error as { readonly status: number | null; readonly stderr: Buffer };
    assert(status !== null && allowed.includes(status), `${script}: status ${status}\n${String(stderr)}`);
  }
}

const readme = readFileSync('README.md', 'utf8');
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text = '']) => text);
const compile = blocks('sh').findLast((block) => block.includes('--node worker-1') && block.includes('-o bundle'));

await suite.check('compiles the bundle', () => shell(compile ?? 'false'));
for (const command of blocks('sh-node').flatMap((block) => block.trimEnd().split('\n'))) {
  // plan ends with 1 where it would change something, and here it would. A rollback goes on from what apply did.
  await suite.check(command, () => shell(command, command.includes(' plan ') ? [1] : [0]));
}
await suite.check('has commands for a node', () =>
  assert(blocks('sh-node').length > 1, 'no block of language sh-node'),
);
suite.finish();
