import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { readQuestion } from '../../src/apply/change/confirmation-question.ts';

test('a question that an older version asked has all lists of what is kpc-apply’s', async () => {
  const question = {
    id: 'a1',
    pid: 17,
    started: '4711',
    bootId: 'boot',
    deadline: 1000,
    record: { bootId: 'boot', owned: { virtualServers: [], sets: ['KUBE-CLUSTER-IP'], chains: [] }, draining: [] },
  };
  const host = { readFile: async () => JSON.stringify(question) } as Partial<Host> as Host;
  expect(await readQuestion(host, '/var/lib/kpc/awaiting.json')).toMatchObject({
    id: 'a1',
    record: { owned: { sets: ['KUBE-CLUSTER-IP'], jumps: [], links: [], besideKubelet: [], nftTables: [] } },
  });
});
