import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const bundle = 'fixtures/nodeport/expected-iptables';

/** The same node with nfnetlink_acct in its kernel: what a kube-proxy left there is counted. */
function counting(host: Host): Host {
  return {
    ...host,
    run: async (command) => {
      const result = await host.run(command);
      if (result.kind !== 'ended' || !/^ip6?tables-save$/.test(command.tool)) return result;
      const stdout = result.stdout
        .replace(
          /^(-A KUBE-FORWARD .*INVALID)( -j DROP)$/m,
          '$1 -m nfacct --nfacct-name  ct_state_invalid_dropped_pkts$2',
        )
        .replace(
          /^(-A KUBE-NODEPORTS) (.*) (-j KUBE-EXT-.*)\n/gm,
          '$1 -d 127.0.0.0/8 $2 -m nfacct --nfacct-name  localhost_nps_accepted_pkts $3\n$&',
        );
      return { ...result, stdout };
    },
  };
}

test('kpc-apply plan and verify see through what a kube-proxy counts', async () => {
  const { host } = createFakeNode();
  expect((await callApply(host, 'apply', bundle)).status).toBe(0);
  const node = counting(host);
  const saved = await node.run({ tool: 'iptables-save', args: [] });
  expect(saved).toMatchObject({
    stdout: expect.stringMatching(/ct_state_invalid[^]*localhost_nps|localhost_nps[^]*ct_state_invalid/),
  });
  for (const command of [['plan'], ['plan', '--adopt'], ['verify']]) {
    expect(await callApply(node, ...command, bundle)).toMatchObject({ status: 0 });
  }
});
