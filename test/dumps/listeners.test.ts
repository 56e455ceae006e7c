import { expect, test } from 'vitest';
import { findDumpListeners } from '../../src/dumps/coverage.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import { emptyState } from '../../src/kernel/state.ts';

const nodePort = { family: 'ipv4', protocol: 'TCP', port: 30080 } as const;

/** Where a node port listens by a listing of nft whose set nodeport-ips has these elements. */
function listenersOf(elements: string) {
  const set = `set nodeport-ips {\n\t\ttype ipv4_addr\n${elements}\t}`;
  const { tables } = parseNftText(`table ip kube-proxy {\n\t${set}\n}\n`);
  return findDumpListeners({ ...emptyState, nftables: tables }, { virtualServers: true })(nodePort);
}

test('a set whose elements a dump leaves out does not show that a node port listens nowhere', () => {
  expect(listenersOf('\t\telements = { 192.0.2.1 }\n')).toEqual({ kind: 'listed', addresses: ['192.0.2.1'] });
  expect(listenersOf('')).toEqual({ kind: 'unknown' });
});
