import {
  anyOf,
  listOf,
  mapOf,
  named,
  nullable,
  number,
  oneOf,
  text as string,
  worded,
  type Schema,
} from '../../../base/json/schema.ts';
import { item, list, text, type ValueOf } from '../../../base/json/kubernetes-schema.ts';

function words(expected: string): Schema<string | readonly string[] | null> {
  return nullable(worded(expected, named('words', anyOf(expected, string, listOf(string)))));
}

const mode = words('iptables, ipvs or nftables, or a list of these');
const release = words('a release such as "1.36", in quotes, or a list of releases');
const nodes = words('the name of a node, a list of names, or all');

const packetTestSchema = item({
  name: text,
  from: words('an address, a Pod, pod, remote-pod, node or external, or a list of these'),
  to: words('address:port, svc/name[:port] or a DNS name, or a list of these'),
  proto: nullable(worded('tcp, udp, sctp or icmp', oneOf('tcp', 'udp', 'sctp', 'icmp'))),
  node: nodes,
  nodes,
  mode,
  release,
  expect: nullable(
    anyOf(
      'a list of endpoints (address:port or a Pod), endpoints with their shares of connections, or one of delivered, refused, dropped, forwarded, local, unknown and fails',
      string,
      listOf(string),
      mapOf(number('a share of connections, from 0 to 1', 0, 1)),
    ),
  ),
  source: nullable(worded('kept, masqueraded, mixed or the address that endpoints see', string)),
});

export const packetTestsSchema = item({
  inputs: words('files and folders with manifests, a bundle or a dump; paths count from this file'),
  hostAddresses: nullable(worded('a file with the output of "ip -j addr" on the node', string)),
  namespace: text,
  node: nodes,
  nodes,
  mode,
  release,
  tests: list(packetTestSchema),
});

export type RawPacketTests = ValueOf<typeof packetTestsSchema>;

export type RawPacketTest = ValueOf<typeof packetTestSchema>;
