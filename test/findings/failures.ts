import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../src/apply/node/host.ts';
import { mostRead, Room, tooLarge } from '../../src/apply/node/output.ts';
import { callApply, type ApplyRun } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
import { readPage } from '../support/markdown.ts';
import { makeKey } from '../support/signing-key.ts';

/** The faults in docs/faults.md were made on a kernel; those of this file need none. */
const bundle = 'fixtures/dual-stack/expected-ipvs';

/** A node on which reading a file fails. */
function failing(path: string, error: Error): Host {
  const { host } = createFakeNode();
  return {
    ...host,
    readFile: async (file) => {
      if (file.endsWith(path)) throw error;
      return host.readFile(file);
    },
  };
}

/** What kpc-apply says of faults that no kernel is needed for. */
async function runFaults(): Promise<readonly string[]> {
  const { host } = createFakeNode();
  const damaged = createFakeNode();
  damaged.files.set('/var/lib/kpc/record.json', '{');
  const refused = Object.assign(
    new Error('EACCES: permission denied, open /sys/module/ip_vs/parameters/conn_tab_bits'),
    {
      code: 'EACCES',
      syscall: 'open',
    },
  );
  const runs = [
    await goBackTo(99),
    await callApply(host, 'rollback'),
    await rollBackNothing(),
    await callApply(host, 'confirm'),
    await callApply(damaged.host, 'apply', bundle),
    await callApply(failing('/hashsize', refused), 'plan', bundle),
    await callApply(failing('/proc/net/ip_vs', new TypeError('x is not a function')), 'plan', bundle),
    await callApply(
      failing('/proc/net/ip_vs', tooLarge({ problem: 'file', path: '/proc/net/ip_vs' }, new Room(mostRead))),
      'plan',
      bundle,
    ),
    await callApply(interrupted(), 'apply', bundle),
    await planUnsigned(),
  ];
  return runs.map(({ err }) => err);
}

/** What --trust says to a bundle without a signature. */
async function planUnsigned(): Promise<ApplyRun> {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-failures-'));
  try {
    return await callApply(createFakeNode().host, 'plan', bundle, '--trust', makeKey(folder, 'kpc').trusted);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What a rollback says to a state that is not kept. */
async function goBackTo(state: number): Promise<ApplyRun> {
  const { host } = createFakeNode();
  await callApply(host, 'apply', bundle);
  return callApply(host, 'rollback', '--to', String(state));
}

/** What a rollback says after an apply that changed nothing. */
async function rollBackNothing(): Promise<ApplyRun> {
  const { host } = createFakeNode();
  for (const _ of ['first', 'second']) await callApply(host, 'apply', bundle);
  return callApply(host, 'rollback');
}

/** A node on which a signal comes as soon as the first tool runs. */
function interrupted(): Host {
  const { host } = createFakeNode();
  return {
    ...host,
    run: async (...args) => {
      process.emit('SIGINT');
      return host.run(...args);
    },
  };
}

/** Code → what kpc-apply says. */
export async function failureExamples(): Promise<ReadonlyMap<string, string>> {
  const faults = readPage('docs/faults.md').matchAll(/\| ([^|]*?) \[([a-z-]+)\] —/g);
  const runs = (await runFaults()).flatMap((err) => [...err.matchAll(/^error: (.*) \[([a-z-]+)\]$/gm)]);
  const all = [...runs, ...faults].map(([, text = '', code = '']) => [code, text.replaceAll('\\', '')] as const);
  return new Map(all.toReversed());
}
