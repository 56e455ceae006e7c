// Compares, in nftables mode, the rules that a packet met according to `nft monitor trace` with the steps of kpc's evaluator, for packets
// of packet-matrix.ts in random order. Prints the seed.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { nftRuleMeaning } from '../../src/kernel/nftables/nft-delta.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import type { NftRule } from '../../src/kernel/nftables/table.ts';

import type { Way } from '../../src/packet/packet.ts';
import { makeRandom, shuffle } from '../support/random.ts';
import { assert, expectApply, startSuite } from './harness.ts';
import { addresses, buildNetwork, run } from './network.ts';
import { listQuestions, prepareNode1, read, readBundleSide, type Question } from './packet-matrix.ts';
import { startServers } from './servers.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
// Only rules are compared, so do not wait for an answer longer than until a packet is sent again.
process.env['PROBE_TIMEOUT'] = '0.9';
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000);
const suite = startSuite('packet-steps');
buildNetwork();
const traffic = await startServers(['tcp', 'udp']);

await suite.check(`the steps are those of nft monitor trace (seed ${seed})`, async () => {
  await expectApply(['apply', `${bundles}/whole-nftables`], 0);
  for (const family of ['ip', 'ip6']) run('nft', ['-f', '-'], tracing(family));
  const side = await readBundleSide(`${bundles}/whole-nftables`);
  const evaluate = prepareNode1(side.state);
  const all = listQuestions(side, false).filter(({ protocol }) => protocol !== 'icmp');
  const questions = shuffle(all, makeRandom(seed)).slice(0, 800);
  const monitor = watchTraces();
  await sleep(500);
  const wrong: string[] = [];
  let compared = 0;
  for (let at = 0; at < questions.length; at += 25) {
    const some = questions.slice(at, at + 25);
    monitor.forget();
    await traffic.probe(some.map((question) => probeOf(question)));
    await sleep(200);
    for (const question of some) {
      const { from, protocol, to, port } = question;
      const isNode = from === 'node1';
      const source = isNode ? undefined : read(addresses[from][to.family]);
      const { ways } = evaluate({ source, destination: to, protocol, port, enters: isNode ? undefined : {} });
      const name = `${isNode ? 'node' : addresses[from][to.family]} ${protocol} ${to.text} ${port}`;
      const seen = monitor.seen(name);
      if (seen.length === 0) continue;
      compared++;
      const expected = new Set(ways.map((way) => tellWay(way, isNode)));
      for (const each of new Set(seen)) {
        if (!expected.has(each)) wrong.push(`${name}:\nkernel\n${each}\nkpc\n${[...expected].join('\nor\n')}`);
      }
    }
  }
  monitor.close();
  console.log(`packet-steps: ${compared} packets compared, ${wrong.length} disagreements`);
  assert(compared >= 500, `only ${compared} packets were traced`);
  assert(wrong.length === 0, `${wrong.length} differ:\n${wrong.slice(0, 5).join('\n\n')}`);
});
traffic.close();
suite.finish();

/** Returns rules that make the kernel trace the packets that open a connection, before any of kube-proxy's rules. */
function tracing(family: string): string {
  const opening = [
    'tcp flags & (syn | ack) == syn meta nftrace set 1',
    // Do not trace the answers.
    'meta l4proto udp udp sport != { 53, 8080 } meta nftrace set 1',
  ].join('\n');
  return ['prerouting', 'output']
    .map((hook) => `table ${family} lab { chain ${hook} {\ntype filter hook ${hook} priority -400\n${opening}\n}\n}\n`)
    .join('');
}

function probeOf({ from, protocol, to, port }: Question) {
  const isNode = from === 'node1';
  return {
    from: isNode ? '-' : from === 'stranger' ? 'client' : from,
    protocol: protocol === 'udp' ? ('udp' as const) : ('tcp' as const),
    address: to.text,
    port,
    source: isNode ? undefined : addresses[from][to.family],
  };
}

/** Lists the rules of a path, one per line. Leaves out the second packet that the kernel makes of a packet from the node to itself. */
function tellWay({ steps }: Way, isNode: boolean): string {
  return steps
    .flatMap((step) => {
      if (step.kind !== 'rule' || (isNode && (step.hook === 'prerouting' || step.hook === 'input'))) return [];
      return [`${step.chain} ${nftRuleMeaning(step.rule as NftRule)}`];
    })
    .join('\n');
}

interface Monitor {
  /** Returns the rules that each packet from a source to a destination met, one per line. */
  seen(name: string): readonly string[];
  forget(): void;
  close(): void;
}

function watchTraces(): Monitor {
  const child = spawn('nft', ['monitor', 'trace'], { stdio: ['ignore', 'pipe', 'inherit'] });
  /** The packet that now has an id. Ids are reused, and a packet that a bridge forwards gets a new id. */
  const current = new Map<string, string[]>();
  /** Packets by their source address and port before masquerading. */
  const flows = new Map<string, string[]>();
  const seen = new Map<string, string[][]>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [, id = '', family = '', table = '', chain = '', rest = ''] =
      /^trace id (\w+) (\w+) (\S+) (\S+) (.*)$/.exec(line) ?? [];
    if (rest.startsWith('packet: ')) {
      const flow = find(rest, /(ip6? saddr \S+)/) + find(rest, /((?:tcp|udp) sport \d+)/);
      if (table === 'lab') {
        const rules: string[] = [];
        // Ignore repeated packets: a retransmission meets fewer rules, and a packet from the node to itself comes in again as another
        // packet.
        if (!flows.has(flow)) {
          flows.set(flow, rules);
          const name = nameOfPacket(chain, rest);
          seen.set(name, [...(seen.get(name) ?? []), rules]);
        }
        current.set(id, rules);
        if (flows.get(flow) !== rules) flows.set(flow, rules);
      } else if (!current.has(id)) current.set(id, flows.get(flow) ?? []);
    }
    const [, text] = /^rule (.*) \(verdict .*\)$/.exec(rest) ?? [];
    if (table === 'kube-proxy' && text !== undefined) current.get(id)?.push(`${chain} ${meaningOf(family, text)}`);
  });
  return {
    seen: (name) => (seen.get(name) ?? []).map((rules) => rules.join('\n')),
    forget: () => {
      seen.clear();
      current.clear();
      flows.clear();
    },
    close: () => void child.kill(),
  };
}

function nameOfPacket(chain: string, text: string): string {
  const source = chain === 'output' ? 'node' : find(text, /ip6? saddr (\S+)/);
  return `${source} ${find(text, /\b(tcp|udp) sport/)} ${find(text, /ip6? daddr (\S+)/)} ${find(text, /\bdport (\d+)/)}`;
}

function find(text: string, pattern: RegExp): string {
  return pattern.exec(text)?.[1] ?? '';
}

function meaningOf(family: string, text: string): string {
  const { tables } = parseNftText(`table ${family} t {\nchain c {\n${text}\n}\n}\n`);
  const [rule] = tables[0]?.chains.get('c')?.rules ?? [];
  return rule ? nftRuleMeaning(rule) : text;
}
