import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { runTool } from '../../src/apply/node/real-host.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-environment-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const hostile = {
  PERL5OPT: '-MNoSuchModule',
  PERL5LIB: scratch,
  PERLLIB: scratch,
  PERL5DB: 'BEGIN { print 1 }',
  PERL_UNICODE: 'SDA',
  PERLIO: ':utf8',
  ENV: join(scratch, 'profile'),
  BASH_ENV: join(scratch, 'profile'),
  SHELLOPTS: 'noexec',
  BASHOPTS: 'extdebug',
  'BASH_FUNC_nft%%': '() { echo forged; }',
} as const;

const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(hostile)) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
});

test('a tool is given nothing that makes perl or a shell load something else', async () => {
  Object.assign(process.env, hostile, { KPC_TEST_OTHER: 'stays' });
  const result = await runTool({ tool: 'env', args: ['-0'] });
  delete process.env['KPC_TEST_OTHER'];
  const given = new Map(
    (result.kind === 'ended' ? result.stdout : '').split('\0').map((line) => [line.split('=')[0], line]),
  );
  expect(Object.keys(hostile).filter((name) => given.has(name))).toEqual([]);
  expect(given.get('KPC_TEST_OTHER')).toBe('KPC_TEST_OTHER=stays');
  expect(given.get('LC_ALL')).toBe('LC_ALL=C');
});

test('perl loads its own modules', async () => {
  writeFileSync(join(scratch, 'strict.pm'), 'package strict; sub import { print "forged\\n" } 1;\n');
  Object.assign(process.env, hostile);
  const result = await runTool({ tool: 'perl', args: ['-e', 'use strict; print "right\n"'] });
  expect(result).toMatchObject({ kind: 'ended', status: 0, stdout: 'right\n' });
});
