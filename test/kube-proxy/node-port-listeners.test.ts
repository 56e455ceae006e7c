import { expect, test } from 'vitest';
import { parseAddress } from '../../src/kernel/address.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { findLocalhostHandling, findNodePortListeners, listensOn } from '../../src/kube-proxy/node-port-listeners.ts';

const rules = (jump: string): Partial<KernelState> => ({
  iptables: { ipv4: parseIptablesSave(`*nat\n-A KUBE-SERVICES ${jump} -j KUBE-NODEPORTS\nCOMMIT\n`).tables },
});

const table = (content: string): Partial<KernelState> => ({
  nftables: parseNftText(`table ip kube-proxy {\n${content}}\n`).tables,
});

const byRules = [{}, rules('-d 192.0.2.1/32'), rules('! -d 127.0.0.0/8'), rules('-m addrtype --dst-type LOCAL')];
const byTable = [
  {},
  table('\tset nodeport-ips {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.2 }\n\t}\n'),
  table('\tchain services {\n\t\tip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports\n\t}\n'),
];

test('with parts of two modes, a node port listens wherever either part has it', () => {
  const seen = new Set<string>();
  for (const one of byRules) {
    for (const other of byTable) {
      for (const text of ['192.0.2.1', '192.0.2.2', '127.0.0.1']) {
        const address = parseAddress(text);
        if (!address) throw new Error(text);
        const ask = (part: Partial<KernelState>) =>
          listensOn(
            findNodePortListeners({ ...emptyState, ...part })({ family: 'ipv4', protocol: 'TCP', port: 30_080 }),
            address,
          );
        const answers = [ask(one), ask(other)];
        const known = answers.filter((answer) => answer !== undefined);
        expect(ask({ ...one, ...other }), answers.join()).toBe(known.length === 0 ? undefined : known.includes(true));
        seen.add(answers.join());
      }
    }
  }
  // Each answer of one part beside each of the other.
  expect(seen.size).toBe(9);
});

const elements = (keys: readonly string[], verdict = '') =>
  `elements = { ${keys.map((key) => `${key}${verdict}`).join(', ')} }`;

/** A table that rejects UDP alone on localhost, as where kube-proxy listens for TCP. */
const { nftables = [] } = table(`
	set localhost-nodeport-reject-ports {
		type inet_proto . inet_service
		${elements(['udp . 30080'])}
	}
	map service-nodeports {
		type inet_proto . inet_service : verdict
		${elements(['tcp . 30080', 'udp . 30080', 'tcp . 30081'], ' : goto a')}
	}
	map no-endpoint-nodeports {
		type inet_proto . inet_service : verdict
		${elements(['tcp . 30081', 'tcp . 30082'], ' : goto b')}
	}
`);

test.each([
  ['TCP', 30_080, 'listens'],
  ['UDP', 30_080, 'rejected'],
  // It has no endpoints for packets from outside, and a chain for those of pods.
  ['TCP', 30_081, 'no-endpoint'],
  ['TCP', 30_082, 'no-endpoint'],
  ['TCP', 30_083, 'no-rule'],
] as const)('%s %i on localhost: %s', (protocol, port, handling) => {
  const find = findLocalhostHandling({ ...emptyState, nftables });
  expect(find({ family: 'ipv4', protocol, port })).toBe(handling);
});
