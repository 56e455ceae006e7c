import { expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

test('a port of another protocol is named', async () => {
  const stdin =
    '{apiVersion: v1, kind: Service, metadata: {name: game}, spec: {clusterIP: 10.96.7.7, ports: [{name: rcon, port: 27015}]}}\n';
  const words = ['trace', '-', '--from', 'node', '--to', 'game:rcon', '--proto', 'udp', '--output', 'json'];
  const { stdout } = await runKpc(words, { stdin });
  const details = { problem: 'no-such-port', to: 'game:rcon', others: ['27015/TCP'] };
  expect(findingsOf(stdout, 'not-found').map((each) => each.arguments)).toEqual([details]);
});
