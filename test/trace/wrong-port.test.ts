// A port that the Service of an address does not have: no rule is lost, whatever the rules of the release name.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const dumps = join(fixturesFolder, 'dumps');

test.each(readdirSync(dumps).filter((name) => /^release-.*-nftables$/.test(name)))('%s', async (name) => {
  const call = ['trace', join(dumps, name), '--from', 'pod', '--to', '10.96.0.10:8099', '--output', 'json'];
  const [trace] = resultOf((await runKpc(call)).stdout).traces as readonly {
    readonly verdict: string;
    readonly cause?: { readonly kind: string };
    readonly notes: readonly string[];
  }[];
  expect(trace).toMatchObject({ verdict: 'refused' });
  expect(trace?.cause?.kind).not.toBe('kube-proxy');
  expect(trace?.notes.join()).toMatch(/\bshop\/web\b.*\b8099\/TCP\b.*\b80\/TCP\b/);
});
