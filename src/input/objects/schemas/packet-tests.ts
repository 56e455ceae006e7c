import { item, list, text, type DescribedValue, type Schema } from '../../../diagnostics/json-schema.ts';

const word: Schema<string> = { type: 'string', expected: 'a string' };

function words(expected: string): Schema<string | readonly string[] | null> {
  return { type: ['string', 'array', 'null'], items: word, expected };
}

const mode = words('iptables, ipvs or nftables, or a list of these');
const release = words('a release such as "1.36", in quotes, or a list of releases');
const nodes = words('the name of a node, a list of names, or all');

const packetTestSchema = item({
  name: text,
  from: words('an address, a Pod, pod, remote-pod, node or external, or a list of these'),
  to: words('address:port, svc/name[:port] or a DNS name, or a list of these'),
  proto: {
    type: ['string', 'null'],
    enum: ['tcp', 'udp', 'sctp', 'icmp', null],
    expected: 'tcp, udp, sctp or icmp',
  } as Schema<'tcp' | 'udp' | 'sctp' | 'icmp' | null>,
  node: nodes,
  nodes,
  mode,
  release,
  expect: {
    type: ['string', 'array', 'object', 'null'],
    items: word,
    additionalProperties: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      expected: 'a share of connections, from 0 to 1',
    },
    expected:
      'a list of endpoints (address:port or a Pod), endpoints with their shares of connections, or one of delivered, refused, dropped, forwarded, local and unknown',
  } as Schema<string | readonly string[] | Readonly<Record<string, number>> | null>,
  source: {
    type: ['string', 'null'],
    expected: 'kept, masqueraded, mixed or the address that endpoints see',
  } as Schema<string | null>,
});

/** A file of packets with what is expected to become of them, for kpc test. */
export const packetTestsSchema = item({
  inputs: words('files and folders with manifests, a bundle or a dump; paths count from this file'),
  hostAddresses: { type: ['string', 'null'], expected: 'a file with what "ip -j addr" prints on the node' } as Schema<
    string | null
  >,
  namespace: text,
  node: nodes,
  nodes,
  mode,
  release,
  tests: list(packetTestSchema),
});

/** A file of kpc test as its schema has it. */
export type RawPacketTests = DescribedValue<typeof packetTestsSchema>;

/** One of its tests. */
export type RawPacketTest = DescribedValue<typeof packetTestSchema>;
