import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { checksModule } from '../../scripts/checks-module.mjs';
import { afterAll, beforeAll, expect, test } from 'vitest';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-hang-up-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A program that goes on until its terminal has hung up, says something, and ends with status 3. */
const source = `
  import { isatty } from 'node:tty';
  import { writeFileSync } from 'node:fs';
  import { processTerminal } from './src/cli/shared/terminal.ts';
  import { interruptible } from './src/cli/kpc-apply/environment.ts';
  const terminal = processTerminal();
  const hangUp = () => new Promise((resolve) => {
    const looking = setInterval(() => {
      if (isatty(2)) return;
      clearInterval(looking);
      terminal.err('no one hears this\\n').catch(() => undefined).then(resolve);
    }, 50);
  });
  terminal.err('here I am\\n');
  void interruptible({}, () => {
    writeFileSync(process.argv[2], '');
    return hangUp();
  }).then(() => {
    process.exitCode = 3;
  });
`;
const program = join(scratch, 'program.cjs');

beforeAll(async () => {
  await build({
    stdin: { contents: source, resolveDir: process.cwd(), loader: 'ts' },
    outfile: program,
    plugins: [checksModule],
    bundle: true,
    platform: 'node',
    format: 'cjs',
  });
});

function has(tool: string): boolean {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Where the terminal goes away while the shell that started the program, or no process, is left of the session. */
test.skipIf(process.platform !== 'linux' || !has('script'))(
  'a program whose terminal hangs up ends with its own status',
  { timeout: 60_000 },
  async () => {
    const [started, status] = [join(scratch, 'started'), join(scratch, 'status')];
    const command = `trap '' HUP; ${process.execPath} ${program} ${started}; echo $? >${status}.new; mv ${status}.new ${status}`;
    const terminal = spawn('script', ['-q', '-c', command, '/dev/null'], { stdio: ['pipe', 'ignore', 'ignore'] });
    await until(() => existsSync(started));
    terminal.kill('SIGKILL');
    await until(() => existsSync(status));
    // Node itself would abort: 134.
    expect(readFileSync(status, 'utf8')).toBe('3\n');
  },
);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
}
