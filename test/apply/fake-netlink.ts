import type { Command, CommandResult, Host } from '../../src/apply/node/host.ts';
import { netlinkProgram } from '../../src/apply/node/nft-netlink.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { runNft, type FakeNft } from './fake-nft.ts';

/** A fake node whose kernel can be asked for single objects of nftables, as perl does it. */
export interface NetlinkNode {
  readonly node: FakeNode;
  readonly host: Host;
  /** What kpc-apply ran, without what this file runs for its own answers. */
  readonly commands: Command[];
  /** Of its network namespace. */
  cookie: number;
  /** Another program changes something in nftables. */
  disturb(input?: string): Promise<void>;
}

/** The tables of one network namespace: what lists one, and how often they were changed. */
interface Namespace {
  readonly list: (table: string) => Promise<string>;
  generation: number;
  readonly network: () => string;
}

const ok = (stdout: string): CommandResult => ({ kind: 'ended', status: 0, stdout, stderr: '' });

/** `hasRules`: iptables keeps its rules in nftables. */
export function createNetlinkNode({ hasRules = false } = {}): NetlinkNode {
  const node = createFakeNode();
  node.files.set('/proc/self/ns/net', 'net:[4026531840]');
  if (hasRules) node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
  const commands: Command[] = [];
  const listTable = async (table: string): Promise<string> => {
    const result = await node.host.run({ tool: 'nft', args: ['list', 'table', ...table.split(' ')] });
    return result.kind === 'ended' && result.status === 0 ? result.stdout : '';
  };
  const network = () => `${/\d+/.exec(node.files.get('/proc/self/ns/net') ?? '')?.[0]} cookie ${made.cookie}`;
  const namespace: Namespace = { list: listTable, generation: 1, network };
  const run = async (command: Command): Promise<CommandResult> => {
    const { tool, args, stdin = '' } = command;
    if (tool === 'perl') return args[1] === netlinkProgram ? ok(await answer(namespace, stdin)) : { kind: 'missing' };
    if (tool === 'unshare') return args.includes('sh') ? rehearse(stdin) : ok('');
    if (hasRules && tool.endsWith('-save') && args[0] === '--version') return ok(`${tool} v1.8.9 (nf_tables)\n`);
    const result = await node.host.run(command);
    const ended = result.kind === 'ended' && result.status === 0;
    if (hasRules && ended && /^ip6?tables-restore$/.test(tool)) {
      namespace.generation += stdin.split('\n').filter((line) => line === 'COMMIT').length;
    }
    if (tool === 'nft' && args[0] === '-f' && ended) namespace.generation++;
    return result;
  };
  const made: NetlinkNode = {
    node,
    commands,
    cookie: 1,
    host: {
      ...node.host,
      run: (command) => {
        commands.push(command);
        return run(command);
      },
    },
    disturb: async (input = 'add table ip another\n') =>
      void (await run({ tool: 'nft', args: ['-f', '-'], stdin: input })),
  };
  return made;
}

/** The program of nft-netlink.ts. */
async function answer({ list, generation, network }: Namespace, questions: string): Promise<string> {
  const answers: string[] = [];
  for (const question of questions.split('\n').filter(Boolean)) {
    const [about = '', family, name = '', key = ''] = question.split(' ');
    answers.push(`${answerOne(await list(family === '2' ? 'ip kube-proxy' : 'ip6 kube-proxy'), about, name, key)}.\n`);
  }
  const moment = `generation ${generation} of ${network()}\n`;
  return `${moment}${answers.join('')}${moment}`;
}

function answerOne(table: string, about: string, name: string, key: string): string {
  if (table === '') return 'none\n';
  const parts = [...table.matchAll(/^\t(chain|set|map) (\S+) \{\n((?:\t\t.*\n)*)\t\}$/gm)];
  if (about === 'table') return `table 2=00000000 ${parts.length}\n`;
  const part = parts.find(([, kind, other]) => other === name && (kind === 'chain') === (about === 'chain'));
  if (!part) return 'none\n';
  const lines = (part[3] ?? '').split('\n').filter(Boolean);
  const isElements = (line: string) => line.startsWith('\t\telements = {');
  if (about === 'chain') return `chain\n${lines.map((line) => `rule ${line.trim()}\n`).join('')}`;
  if (about === 'set') return `set ${lines.filter((line) => !isElements(line)).join(';')}\n`;
  const elements = /\{ (.*) \}$/.exec(lines.find(isElements) ?? '')?.[1]?.split(', ') ?? [];
  const shown = elements
    .map((element) => `element ${Buffer.from(element.replace(/ (?:comment|:) .*$/, '')).toString('hex')} ${element}\n`)
    .toSorted();
  if (about === 'elements') return shown.join('');
  return shown.find((line) => line.startsWith(`element ${key} `)) ?? 'none\n';
}

/** The script of prove-nft-change.ts, in an empty network namespace. */
async function rehearse(script: string): Promise<CommandResult> {
  const tables: FakeNft = new Map();
  const list = async (table: string): Promise<string> => {
    const result = runNft(tables, ['list', 'table', ...table.split(' ')], '');
    return result.kind === 'ended' && result.status === 0 ? result.stdout : '';
  };
  const namespace: Namespace = { list, generation: 1, network: () => '4026532000 cookie 2' };
  let out = '';
  const rest = script.slice(script.indexOf(netlinkProgram) + netlinkProgram.length);
  const steps = rest.matchAll(/^(nft -f -|perl .*) <<'(\S+)'\n([\s\S]*?)^\2\n|^(echo =|nft -s list table (.*))\n/gm);
  for (const [, command = '', , input = '', other = '', table = ''] of steps) {
    if (other === 'echo =') out += '=\n';
    else if (table !== '') out += await list(table);
    else if (command === 'nft -f -') {
      const result = runNft(tables, ['-f', '-'], input);
      if (result.kind === 'missing' || result.status !== 0) return result;
      namespace.generation++;
    } else out += await answer(namespace, input);
  }
  return ok(out);
}
