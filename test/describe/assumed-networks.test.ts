// The networks that the note on assumptions names for Pods.
import { expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const node = (name: string, at: number): string =>
  `{apiVersion: v1, kind: Node, metadata: {name: ${name}}, spec: {podCIDRs: [10.244.${at}.0/24, "fd00:${at}::/64"]}}\n---\n`;
const web =
  '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ipFamilies: [IPv6], selector: {app: web}, ports: [{port: 80}]}}\n---\n' +
  '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {}}}}\n';

test.each([
  [node('n1', 1) + node('n2', 2), ['10.244.1.0/24', '10.244.2.0/24', 'fd00:1::/64', 'fd00:2::/64']],
  ['', ['10.244.0.0/16', 'fd00:10:244::/56']],
])("are the given Nodes', else the cluster's", async (nodes, networks) => {
  const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: nodes + web });
  const [note] = findingsOf(stdout, 'assumed');
  const assumed = note?.arguments as { values: readonly { what: string; from: readonly string[] }[] } | undefined;
  const pods = assumed?.values.find(({ what }) => what === 'readyPod');
  expect(pods?.from.toSorted()).toEqual(networks);
});
