// Two slices that list one endpoint differently: a warning, and an answer that no name of a slice decides.
import { describe, expect, test } from 'vitest';
import { findingsOf } from '../../support/printed-json.ts';
import { runKpc } from '../../support/run-kpc.ts';

const web = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;

function slice(name: string, fields: string, port = 8080): string {
  return `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [10.244.0.1]${fields} }]
`;
}

const [ready, unready] = ['', ', conditions: { ready: false }'];
const terminating = ', conditions: { ready: false, serving: true, terminating: true }';
const releases = ['1.35', '1.37'];

describe.each(releases)('in %s', (release) => {
  test.each([
    ['readiness', ready, unready, true],
    ['a hint', ready, ', hints: { forZones: [{ name: a }] }', true],
    ['nothing', unready, unready, false],
    ['the zone alone', ready, ', zone: a', false],
    ['a terminating endpoint, which counts only until 1.35', ready, terminating, release === '1.35'],
    ['the node, which decides only from 1.36', ', nodeName: w1', ', nodeName: w2', release === '1.37'],
  ])('%s', async (_, one, other, isFound) => {
    const stdin = web + slice('web-1', one) + slice('web-2', other);
    const flags = ['--proxy-mode', 'iptables', '--kubernetes-version', release, '--output', 'json'];
    const { stdout } = await runKpc(['lint', '-', ...flags], { stdin });
    const found = findingsOf(stdout).filter(({ code }) => code === 'disagreeing-slices');
    const details = { service: 'default/web', slices: ['default/web-1', 'default/web-2'], endpoints: ['10.244.0.1'] };
    expect(found.map((each) => each.arguments)).toEqual(isFound ? [details] : []);
  });
});

test('slices of other ports do not disagree', async () => {
  const stdin = web + slice('web-1', ready) + slice('web-2', unready, 9090);
  const { stdout } = await runKpc(['lint', '-', '--proxy-mode', 'iptables', '--output', 'json'], { stdin });
  expect(findingsOf(stdout).map(({ code }) => code)).not.toContain('disagreeing-slices');
});
