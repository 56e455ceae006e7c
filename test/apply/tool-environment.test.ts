import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { realHost } from '../../src/apply/node/real-host.ts';
import { runTool } from '../../src/apply/node/run-tool.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-environment-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const hostile = {
  PERL5OPT: '-MNoSuchModule',
  PERL5LIB: scratch,
  PERL_UNICODE: 'SDA',
  ENV: join(scratch, 'profile'),
  BASH_ENV: join(scratch, 'profile'),
  SHELLOPTS: 'noexec',
  'BASH_FUNC_nft%%': '() { echo forged; }',
  XTABLES_LIBDIR: scratch,
  LD_LIBRARY_PATH: scratch,
  LD_AUDIT: join(scratch, 'audit.so'),
  GCONV_PATH: scratch,
  MODPROBE_OPTIONS: `-C ${scratch}`,
  IPTABLES_UNKNOWN: 'anything else',
} as const;

const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (before[name] === undefined) delete process.env[name];
  Object.assign(process.env, before);
});

const environmentOf = async (): Promise<readonly string[]> => {
  const result = await runTool({ tool: 'env', args: ['-0'] });
  return result.kind === 'ended' ? result.stdout.split('\0').filter(Boolean).toSorted() : [];
};

test('a tool gets four variables, as docs/security.md says, and no other', async () => {
  Object.assign(process.env, hostile, { NOTIFY_SOCKET: '/run/notify' });
  const names = (await environmentOf()).map((line) => line.split('=')[0]);
  expect(names).toEqual(['KPC_APPLY_RUN', 'LC_ALL', 'NOTIFY_SOCKET', 'PATH']);
  const page = readFileSync('docs/security.md', 'utf8');
  for (const name of names) expect(page).toMatch(new RegExp(`\`${name}[\`=]`));
});

test.each([
  ['unset', undefined],
  ['empty', ''],
  ['of relative and empty elements', `.::bin:${'nowhere/..'}:`],
] as const)('a tool is looked for in the folders of distributions alone where PATH is %s', async (_, path) => {
  if (path === undefined) delete process.env['PATH'];
  else process.env['PATH'] = path;
  expect(await environmentOf()).toContain('PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin');
});

test('the folders of PATH come before those of distributions', async () => {
  process.env['PATH'] = `/opt/nft/sbin:.:/bin`;
  expect(await environmentOf()).toContain(
    'PATH=/opt/nft/sbin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin',
  );
});

test('a program that outlives kpc-apply gets no other variables than a tool', async () => {
  const file = join(scratch, 'apart');
  Object.assign(process.env, hostile);
  await realHost.startApart({ tool: 'sh', args: ['-c', `env -0 > ${file}; echo`] });
  const names = readFileSync(file, 'utf8')
    .split('\0')
    .map((line) => line.split('=')[0]);
  expect(names.filter((name) => name !== undefined && name in hostile)).toEqual([]);
});

test('perl loads its own modules', async () => {
  writeFileSync(join(scratch, 'strict.pm'), 'package strict; sub import { print "forged\\n" } 1;\n');
  Object.assign(process.env, hostile);
  const result = await runTool({ tool: 'perl', args: ['-e', 'use strict; print "right\n"'] });
  expect(result).toMatchObject({ kind: 'ended', status: 0, stdout: 'right\n' });
});
