// Each rule: its example trips it, a file much like it does not, and kpc trace shows what a finding says of packets.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Example } from '#codes';
import { codesFolder, readExample } from '../../scripts/codes-module.mjs';
import type { FindingCode } from '../../src/base/findings/codes.ts';
import { ruleCodes } from '../../src/ask/lint/rules.ts';
import { inFolder } from '../findings/tripped.ts';
import { runKpc } from '../support/run-kpc.ts';
import type { Linted } from './linted.ts';
import { resultOf } from '../support/printed-json.ts';

const rules = ruleCodes.toSorted();

/** What kpc lint says of the files of an example, with its flags. */
async function lintExample({ words, files }: Example, then: (linted: Linted, cwd: string) => Promise<void>) {
  const [command, ...others] = words;
  const given = command === 'lint' ? others : others.filter((word) => word !== '-f');
  await inFolder(files, async (cwd) => {
    const { stdout, stderr } = await runKpc(['lint', ...given, '--output', 'json'], { cwd });
    expect(stderr).toBe('');
    await then(JSON.parse(stdout) as Linted, cwd);
  });
}

function codesOf({ findings }: Linted): readonly FindingCode[] {
  return findings.map(({ code }) => code);
}

/** Rules that say nothing of packets to a Service's addresses, or of packets that no rule of a kernel sees: to a hostPort, by ARP, through a set that does not load, from a cluster IP on. */
const silent: ReadonlySet<FindingCode> = new Set([
  'cluster-ip-endpoint',
  'covered-addresses',
  'external-ips',
  'full-set',
  'headless-port',
  'host-port',
  'idle-affinity',
  'idle-ignore',
  'ignored-service',
  'ipvs-ends',
  'lax-arp',
  'misspelled-key',
  'no-endpoints-given',
  'node-port-range',
  'policy-port',
  'refused-cluster-ip',
  'undeclared-port',
  'unknown-service',
  'unloadable-range',
  'unnamed-mode',
  'unused-slice-port',
]);

describe.each(rules)('%s', (code) => {
  test('its example trips it, and kpc trace shows it', async () => {
    await lintExample(await readExample(join(codesFolder, code, 'example')), async (linted, cwd) => {
      expect(codesOf(linted)).toContain(code);
      const own = linted.findings.filter((finding) => finding.code === code);
      expect(own.some(({ trace }) => trace !== undefined)).toBe(!silent.has(code));
      for (const { trace } of linted.findings) if (trace) await expectTrace(trace, cwd);
    });
  });

  test('a right file does not', async () => {
    const passes = await readExample(join(codesFolder, code, 'passes'));
    await lintExample(passes, async (linted) => expect(codesOf(linted)).not.toContain(code));
  });
});

/** The command, as it is printed, traces a packet that ends as the finding says. */
async function expectTrace({ command, verdict }: NonNullable<Linted['findings'][number]['trace']>, cwd: string) {
  const [kpc, ...words] = command.split(' ').map((word) => word.replaceAll("'", ''));
  expect(kpc).toBe('kpc');
  const traced = await runKpc([...words, '--output', 'json', '-q'], { cwd });
  expect(traced.stderr).toBe('');
  expect(resultOf(traced.stdout).traces).toMatchObject([{ verdict }]);
}
