// Compares kpc's verdict on a packet with the kernel's handling, for all packets in the network of network.ts: from every source, to every
// address and port of the Services of packets/before and packets/more and to some unused ones, in both families and the requested modes.
// Prints how many agree.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { contains, parseNetwork, type Address } from '../../src/kernel/address.ts';
import type { Evaluator } from '../../src/packet/evaluate.ts';
import { isUnknownOwn, type Fate, type PacketProtocol } from '../../src/packet/packet.ts';
import { assert, expectApply, startSuite } from './harness.ts';
import { addresses, buildNetwork, run, supportsSctp } from './network.ts';
import { makeRandom, shuffle } from '../support/random.ts';
import { listNodeRulesets } from './node-rulesets.ts';
import { listRulesets, valuesOf, type OtherRuleset } from './other-rulesets.ts';
import { evaluatorOfDump, load, printNode } from './packet-truth-others.ts';
import {
  listQuestions,
  nameOf,
  prepareNode1,
  read,
  readBundleSide,
  type Question,
  type Services,
} from './packet-matrix.ts';
import { makeCluster } from './random-cluster.ts';
import { startServers } from './servers.ts';
import { repeat } from './traffic.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
// A packet without an answer delays its batch by this time. A connection's first packet is sent again after one and after three seconds.
process.env['PROBE_TIMEOUT'] = '4';
/** "every=10+5" sends only one packet in ten, beginning with the fifth, for slow kernels. */
const words = process.argv.slice(2);
const sample = words.find((word) => word.startsWith('every='))?.slice('every='.length) ?? '1';
const [every = 1, first = 0] = sample.split('+').map(Number);
/** "others=3" makes three rounds under the rules of each other program. */
const rounds = Number(words.find((word) => word.startsWith('others='))?.slice('others='.length) ?? 0);
/** Other programs' refusals give other errors. */
const refusal =
  rounds > 0 ? /^(refused|unreachable|reset|error:Permission denied|error:Operation not permitted)$/ : /^refused$/;
const modes = words.filter((word) => !word.includes('='));
const suite = startSuite('packet-truth');
buildNetwork();
// Lift the kernel's limit on refusals, and turn off redirects, which tell senders of shorter paths that bypass the node.
run('sysctl', ['-q', 'net.ipv4.icmp_msgs_per_sec=1000000', 'net.ipv4.icmp_msgs_burst=1000000']);
for (const name of ['all', 'eth0', 'cni0']) run('sysctl', ['-q', `net.ipv4.conf.${name}.send_redirects=0`]);
const hasSctp = supportsSctp();
const traffic = await startServers(hasSctp ? ['tcp', 'udp', 'sctp'] : ['tcp', 'udp']);
await traffic.listen('-', 'tcp', '0.0.0.0', 9999, 'node1');
await traffic.listen('-', 'tcp', '::', 9999, 'node1');
await traffic.listen('node2', 'tcp', '0.0.0.0', 9999, 'node2');
await traffic.listen('node2', 'tcp', '::', 9999, 'node2');

/** The addresses that node 1 gives masqueraded packets as source. */
const ownOfNode1 = { ipv4: ['192.168.0.1', '10.1.1.1'], ipv6: ['fd00:192::1', 'fd00:1:1::1'] } as const;
/** The addresses and node ports of Services with session affinity, where a client sees only one endpoint. */
let sticky: ReadonlySet<string> = new Set(['10.96.0.21']);
let compared = 0;
let disagreeing = 0;

for (const mode of rounds > 0 ? modes : []) await besideOthers(mode);
for (const mode of rounds > 0 ? [] : modes) {
  await suite.check(`${mode}: kpc and the kernel agree on every packet`, async () => {
    await expectApply(['apply', `${bundles}/whole-${mode}`, '--drain-timeout', '0s'], 0);
    run('conntrack', ['-F']);
    const side = await readBundleSide(`${bundles}/whole-${mode}`);
    const evaluate = prepareNode1(side.state);
    const trials = listQuestions(side, hasSctp)
      .filter((_, i) => i % every === first)
      .map((question) => tryOut(evaluate, question));
    // Put packets without an answer into the same batches, because each batch takes as long as its slowest packet.
    const [silent, answered] = [true, false].map((is) => trials.filter((trial) => isSilent(trial) === is));
    const doubtful: Trial[] = [];
    for (const lot of [...lots(answered ?? [], 40), ...lots(silent ?? [], 200)])
      doubtful.push(...(await compare(lot)).trials);
    console.log(
      `packet-truth: ${mode}: ${trials.length} asked, ${silent?.length} unanswered, ${doubtful.length} asked again`,
    );
    const wrong = await askAgain(doubtful);
    compared += trials.length;
    disagreeing += wrong.length;
    assert(wrong.length === 0, `${wrong.length} of ${trials.length} differ:\n${wrong.join('\n')}`);
  });
}
console.log(`packet-truth: ${compared} packets compared, ${disagreeing} disagreements`);
traffic.close();
suite.finish();

/** Sends packets under the rules of each other program in turn, with a random cluster for each round. */
async function besideOthers(mode: string): Promise<void> {
  const seed = Number(process.env['SEED'] ?? 4711);
  const random = makeRandom(seed);
  const values = valuesOf(random);
  let unknown = 0;
  for (let round = 1; round <= rounds; round++) {
    const services = await applyCluster(mode, random);
    // Leave out a host's packets to itself, because they do not pass node 1.
    const questions = listQuestions(services, false).filter(({ from, to }) => addresses[from][to.family] !== to.text);
    const rulesets = shuffle([...listRulesets(values), ...listNodeRulesets(values)], random);
    // Use half of the rulesets in a round, because each waits for unanswered packets. Another seed uses others.
    for (const ruleset of rulesets.slice(0, rulesets.length / 2)) {
      await suite.check(`${mode} beside ${ruleset.name}, round ${round} (seed ${seed})`, async () => {
        const unload = load(ruleset);
        try {
          unknown += await askBeside(ruleset, services, shuffle(questions, random).slice(0, 150), random);
        } finally {
          unload();
        }
      });
    }
  }
  console.log(`packet-truth: ${mode}: ${unknown} unknown`);
}

/** Applies Services of random kinds, and returns them. */
async function applyCluster(mode: string, random: () => number): Promise<Services> {
  const { manifests, flags } = makeCluster(random);
  const folder = mkdtempSync(join(tmpdir(), 'kpc-cluster-'));
  const packets = join(process.env['KPC_LAB'] ?? '', 'packets');
  const common = [join(packets, 'node.yaml'), '--config', join(packets, 'config.yaml'), '--node', 'node1'];
  writeFileSync(join(folder, 'cluster.yaml'), manifests);
  const compile = ['compile', '-q', join(folder, 'cluster.yaml'), ...common, '--proxy-mode', mode, ...flags];
  run(process.execPath, ['dist/kpc.js', ...compile, '-o', join(folder, 'bundle')]);
  await expectApply(['apply', join(folder, 'bundle'), '--drain-timeout', '0s'], 0);
  const side = await readBundleSide(join(folder, 'bundle'));
  rmSync(folder, { recursive: true });
  return side;
}

/** Sends packets, and returns the number of those whose fate kpc does not know. */
async function askBeside(
  { text }: OtherRuleset,
  services: Services,
  questions: readonly Question[],
  random: () => number,
): Promise<number> {
  sticky = stickyAddresses(services);
  run('conntrack', ['-F']);
  const evaluate = evaluatorOfDump(printNode(random() < 0.5, random() < 0.7));
  const trials = questions.map((question) => tryOut(evaluate, question));
  const known = trials.filter(({ fate }) => fate.verdict !== 'unknown');
  const doubtful = (await Promise.all(lots(known, 75).map(compare))).flatMap((each) => each.trials);
  const wrong = await askAgain(doubtful);
  compared += known.length;
  disagreeing += wrong.length;
  assert(wrong.length === 0, `${wrong.length} of ${known.length} differ:\n${wrong.join('\n')}\n${text}`);
  return trials.length - known.length;
}

interface Trial {
  readonly question: Question;
  readonly fate: Fate;
  readonly times: number;
}

function tryOut(evaluate: Evaluator, question: Question): Trial {
  const { from, protocol, to, port } = question;
  const isNode = from === 'node1';
  const fate = evaluate({
    source: isNode ? undefined : read(addresses[from][to.family]),
    destination: to,
    protocol,
    port,
    enters: isNode ? undefined : {},
  });
  // A random choice among two misses one in 14 tries once in 8,000 runs.
  return { question, fate, times: fate.ways.length > 1 ? 14 : 2 };
}

function stickyAddresses({ cluster }: Services): ReadonlySet<string> {
  const own = cluster.servicePorts.filter(({ affinitySeconds }) => affinitySeconds);
  return new Set(
    own.flatMap(({ clusterIP, nodePort, externalIPs, loadBalancerIPs }) => [
      ...[clusterIP, ...externalIPs, ...loadBalancerIPs].map(({ text }) => text),
      String(nodePort || 'none'),
    ]),
  );
}

function isSilent({ question, fate }: Trial): boolean {
  return question.protocol !== 'icmp' && answersTo(question, fate).some((answer) => answer.test('timeout'));
}

function lots<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/**
 * Sends packets whose results differ again in small batches, twice, and returns the differences that stay. A slow kernel loses packets of
 * large batches, and drops packets to a neighbour for some seconds if its answer to ARP was late.
 */
async function askAgain(doubtful: readonly Trial[]): Promise<readonly string[]> {
  let trials = doubtful;
  let differences: readonly string[] = [];
  for (let round = 0; round < 2; round++) {
    const answers = [];
    for (const lot of lots(trials, 4)) answers.push(await compare(lot));
    trials = answers.flatMap((each) => each.trials);
    differences = answers.flatMap((each) => each.differences);
    if (trials.length === 0) break;
    await sleep(3000);
  }
  return differences;
}

/** Returns the trials whose answers differ from kpc's verdict, with the difference. */
async function compare(
  trials: readonly Trial[],
): Promise<{ readonly trials: readonly Trial[]; readonly differences: readonly string[] }> {
  const answers = await Promise.all(
    trials.map(({ question, times }) =>
      question.protocol === 'icmp' ? ping(question) : connectTo(question, question.protocol, times),
    ),
  );
  const found = trials.flatMap((trial, i) => {
    const { question, fate } = trial;
    const seen = [...new Set(answers[i])].toSorted();
    const expected = answersTo(question, fate);
    const isRight = seen.every((answer) => expected.some((each) => each.test(answer)));
    const isWhole =
      fate.endpoints.length === 0 ||
      sticky.has(question.to.text) ||
      sticky.has(String(question.port)) ||
      // A lost packet is sent again, and may then go to another endpoint.
      answersToVerdict(question, fate).every((each) => seen.some((answer) => each.test(answer)));
    if (isRight && isWhole) return [];
    const { from, protocol, to, port } = question;
    const difference = `${from} → ${protocol} ${to.text}:${port}: kernel ${seen.join(', ')}; kpc ${describe(fate)}`;
    return [{ trial, difference }];
  });
  return { trials: found.map(({ trial }) => trial), differences: found.map(({ difference }) => difference) };
}

function describe({ verdict, endpoints }: Fate): string {
  const to = endpoints.map(({ address, port, probability, source }) => {
    return `${address.text}:${port} ${probability.toFixed(2)} from ${source === 'masqueraded' ? source : source.text}`;
  });
  return [verdict, ...to].join(' ');
}

async function connectTo({ from, to, port }: Question, protocol: Exclude<PacketProtocol, 'icmp'>, times: number) {
  const isNode = from === 'node1';
  const isStranger = from === 'stranger';
  const source = isNode ? undefined : addresses[from][to.family];
  const namespace = isNode ? '-' : isStranger ? 'client' : from;
  return traffic.probe(repeat({ from: namespace, protocol, address: to.text, port, source }, times));
}

function ping({ from, to }: Question): Promise<readonly string[]> {
  const own = addresses[from][to.family];
  const namespace = from === 'node1' ? [] : ['ip', 'netns', 'exec', from === 'stranger' ? 'client' : from];
  const asked = from === 'node1' ? [] : ['-I', own];
  const [command = '', ...args] = [...namespace, 'ping', '-n', '-c', '1', '-W', '1', ...asked, to.text];
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (data: Buffer) => (output += data.toString()));
    child.on('close', (status) => {
      const isRefused = /port unreachable|Destination unreachable: Port/i.test(output);
      resolve([
        status === 0
          ? 'answered'
          : isRefused
            ? 'refused'
            : // Words of ping for what is prohibited: "Packet filtered", "Destination Host Prohibited".
              /exceeded|nreachable|filtered|Prohibited/.test(output)
              ? 'unreachable'
              : 'timeout',
      ]);
    });
  });
}

/** Returns patterns for the answers to a packet with this fate. If there are endpoints, each pattern must occur. */
function answersTo(question: Question, fate: Fate): readonly RegExp[] {
  const isAtTimes = (other: Fate['verdict']) =>
    fate.verdict !== other && fate.ways.some(({ verdict }) => verdict === other);
  return [
    ...answersToVerdict(question, fate),
    ...(isAtTimes('dropped') ? [/^timeout$/] : []),
    ...(isAtTimes('refused') ? [refusal] : []),
  ];
}

function answersToVerdict(question: Question, fate: Fate): readonly RegExp[] {
  const { from, protocol, to, port } = question;
  switch (fate.verdict) {
    case 'delivered':
      return fate.endpoints.map(({ address, source }) => {
        const server = nameOf.get(address.text) ?? address.text;
        if (source !== 'masqueraded' && !comesBack(question, address)) return /^(timeout|reset|refused)$/;
        if (source === 'masqueraded' || isUnknownOwn(source))
          return new RegExp(`^${server} (${ownOfNode1[to.family].map(escape).join('|')})$`);
        return new RegExp(`^${server} ${escape(source.text)}$`);
      });
    case 'refused':
      return [refusal];
    case 'dropped':
      return [/^timeout$/];
    case 'local':
      if (protocol === 'icmp') return [/^answered$/];
      return port === 9999 && protocol === 'tcp' ? [/^node1 /] : [/^refused$/];
    case 'forwarded': {
      const server = nameOf.get(to.text);
      if (server !== undefined && port === 8080 && !comesBack(question, to)) {
        // The answer bypasses node 1, which may then find the rest of the connection invalid.
        return [new RegExp(`^(${server} .*|timeout|reset)$`)];
      }
      if (server !== undefined && port === 8080) return [new RegExp(`^${server} `)];
      // Node 2 sends the packet back for lack of a better route. Node 1 treats the packet as one from a stranger, so its rules may refuse
      // it.
      return [/^(timeout|unreachable)$/, ...(from === 'node1' && to.family === 'ipv6' ? [refusal] : [])];
    }
    case 'unknown':
      return [];
  }
}

/** Reports whether an endpoint's answer to the client passes node 1, which alone knows the address that the client used. */
function comesBack({ from, to }: Question, endpoint: Address): boolean {
  const onNode1 = parseNetwork(to.family === 'ipv4' ? '10.1.1.0/24' : 'fd00:1:1::/64');
  const isHere = (address: Address): boolean =>
    address.text === addresses.node1[to.family] || (onNode1 !== undefined && contains(onNode1, address));
  return from === 'node1' || isHere(endpoint) || isHere(read(addresses[from][to.family]));
}

function escape(text: string): string {
  return text.replaceAll('.', '\\.');
}
