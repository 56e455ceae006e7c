import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { checksModule } from '../../scripts/checks-module.mjs';
import { afterAll, expect, test } from 'vitest';
import { realHost } from '../../src/apply/node/real-host.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-apart-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('waits for the first word, and says why there was none', async () => {
  await realHost.startApart({ tool: process.execPath, args: ['-e', 'console.log(1)'] });
  const failing = { tool: process.execPath, args: ['-e', 'console.error("cannot begin"); process.exit(1)'] };
  await expect(realHost.startApart(failing)).rejects.toMatchObject({
    finding: { arguments: { said: 'cannot begin' } },
  });
  await expect(realHost.startApart({ tool: '/nowhere/node', args: [] })).rejects.toThrow('ENOENT');
});

test('what is started outlives its starter, killed with its whole process group', { timeout: 60_000 }, async () => {
  const [starter, late] = [join(scratch, 'starter.cjs'), join(scratch, 'late')];
  await build({
    stdin: {
      contents: `
        import { realHost } from './src/apply/node/real-host.ts';
        const script = \`console.log(process.pid); setTimeout(() => require('fs').writeFileSync('${late}', ''), 500)\`;
        realHost.startApart({ tool: process.execPath, args: ['-e', script] }).then(() => {
          console.log('started');
          setInterval(() => {}, 1000);
        });
      `,
      resolveDir: process.cwd(),
      loader: 'ts',
    },
    outfile: starter,
    plugins: [checksModule],
    bundle: true,
    platform: 'node',
    format: 'cjs',
  });
  const child = spawn(process.execPath, [starter], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  while (!existsSync(late)) await new Promise((resolve) => setTimeout(resolve, 50));
  expect(readFileSync(late, 'utf8')).toBe('');
});

test('reads no folder and no named pipe in the place of a file, and does not wait for one', async () => {
  const [folder, pipe] = [join(scratch, 'folder'), join(scratch, 'pipe')];
  mkdirSync(folder);
  execFileSync('mkfifo', [pipe]);
  await expect(realHost.readFile(folder)).rejects.toThrow(/"is":"folder"/);
  await expect(realHost.readFile(pipe)).rejects.toThrow(/"is":"named pipe"/);
  expect(await realHost.readFile(join(scratch, 'none'))).toBeUndefined();
  expect(await realHost.readFile('/proc/self/stat')).toMatch(/^\d+ /);
});

test('a process that has gone is as good as killed', async () => {
  const child = spawn('sleep', ['60']);
  await realHost.kill(child.pid ?? 0);
  const signal = await new Promise((resolve) => child.on('exit', (_, how) => resolve(how)));
  expect(signal).toBe('SIGKILL');
  await realHost.kill(child.pid ?? 0);
});
