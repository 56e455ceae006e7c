import { decompile, type Decompiled } from '../../describe/decompile.ts';
import type { DecompiledPort } from '../../describe/decompiled-port.ts';
import {
  describeDecompiled,
  hasPort,
  isAbout,
  resolveName,
  describeLeftovers,
} from '../../describe/decompiled-words.ts';
import { findClosedPort, findDeafPort, type AskedNode } from '../../describe/find-port.ts';
import { findOwnAddresses } from '../../describe/node-addresses.ts';
import {
  describeClosed,
  describeDeaf,
  describeSharedInWords,
  type DescriptionLine,
} from '../../describe/describe-words.ts';
import { bareName, findHeld } from '../../describe/find-subject.ts';
import type { SharedSubject } from '../../describe/find-nftables.ts';
import { decompiledRows, formatRows } from '../../describe/service-table.ts';
import { printable } from '../../base/printable.ts';
import { findOwners, type Owners } from '../../diff/changes/owners.ts';
import { count } from '../../base/format-count.ts';
import { classifyServers, nameServers } from '../../diff/virtual-servers.ts';
import { tellsNftables, tellsRules, type Coverage, type Told } from '../../dumps/coverage.ts';
import type { Side } from '../../diff/compared-side.ts';
import { formatDescription } from '../../report/colours.ts';
import type { DescribeOptions } from './describe-command.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { StoredSide } from '../../sides/stored-side.ts';
import { exitStatus, type ExitStatus } from '../shared/exit-status.ts';
import { formatJson } from '../../report/format-json.ts';
import { readNames } from '../../sides/read-side.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { reportInput } from './messages.ts';

/** A table has this many rows per line of a list: rows are short, and the table is what was asked for. */
const rowsPerLine = 5;

/** Prints the Services that a dump shows; manifests beside it name those of IPVS mode. */
export async function describeDump(
  stored: StoredSide & { readonly kind: 'dump' },
  manifests: readonly string[],
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { side } = stored.reading;
  if (!(await reportInput(stored.reading, options, terminal))) return exitStatus.badInput;
  let names: Side['state'] | undefined;
  if (manifests.length > 0) {
    const found = await readNames({ ...options, file: manifests }, terminal.readStdin);
    if (!(await reportInput(found, options, terminal)) || !found.cluster) return exitStatus.badInput;
    names = nameServers(side.state, found.cluster);
  }
  const owners = findOwners(names ? [names, side.state] : [side.state]);
  const belongingOf = classifyServers(side, side);
  const decompiled = decompile(side.state, owners, belongingOf, side.coverage);
  for (const note of notesOf(decompiled, side, belongingOf, names)) await say(terminal, `note: ${printable(note)}\n`);
  return printDecompiled(decompiled, { state: side.state, owners, coverage: side.coverage }, what, options, terminal);
}

function notesOf(
  { mode, ports }: Decompiled,
  { state, coverage }: Side,
  belongingOf: ReturnType<typeof classifyServers>,
  names: Side['state'] | undefined,
): readonly string[] {
  const doubtful = state.virtualServers.filter((server) => belongingOf(server) === 'untold').length;
  const others = state.virtualServers.filter((server) => belongingOf(server) === 'other').length;
  const lacking = missingFiles(mode, coverage);
  const help = names ? '' : ': add manifests with -f to name them';
  const nameless = ports.filter(({ name }) => /\/(TCP|UDP|SCTP)$/.test(name)).length;
  return [
    ...(mode !== undefined && modeFacts[mode].namesServices === 'none' && nameless > 0
      ? [
          `${names ? 'Services that no manifest names are' : 'Services are'} shown by address, because the state of a node in ${modeFacts[mode].title} holds no names${help}`,
        ]
      : []),
    ...(doubtful > 0
      ? [
          `${doubtful} of the virtual servers may be another program's: add the output of ipset save and ip -j addr to find out`,
        ]
      : []),
    ...(others > 0
      ? [
          `${count(others, 'virtual server')} left out: another program's, on addresses that are neither on kube-ipvs0 nor in kube-proxy's sets`,
        ]
      : []),
    ...(lacking.length > 0 ? [`the dump does not hold all of ${lacking.join(', ')}: there may be more Services`] : []),
  ];
}

/** The tools that show the Services of a mode, and that a dump has not got the whole output of. */
function missingFiles(mode: Decompiled['mode'], coverage: Coverage): readonly string[] {
  const missing: { readonly [K in keyof Told]?: readonly string[] } = {
    iptables: [
      ...(tellsRules(coverage, 'ipv4') ? [] : ['iptables-save']),
      ...(tellsRules(coverage, 'ipv6') ? [] : ['ip6tables-save']),
    ],
    nftables: tellsNftables(coverage) ? [] : ['nft list ruleset'],
    sets: coverage.sets ? [] : ['ipset save'],
    virtualServers: coverage.virtualServers ? [] : ['ipvsadm -Sn'],
  };
  const kinds = mode ? modeFacts[mode].serviceKinds : (['iptables', 'sets', 'virtualServers'] as const);
  return kinds.flatMap((kind) => missing[kind] ?? []);
}

async function printDecompiled(
  decompiled: Decompiled,
  held: { readonly state: Side['state']; readonly owners: Owners; readonly coverage: Coverage },
  typed: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { mode, leftovers } = decompiled;
  const { owners } = held;
  const what = typed && resolveName(typed.trim(), owners);
  const node = findOwnAddresses(held.state, held.coverage);
  const choose = (ports: readonly DecompiledPort[]): readonly DecompiledPort[] => {
    if (what === undefined) return ports;
    const found = ports.filter((port) => isAbout(port, what, node));
    return found.length > 0 ? found : ports.filter((port) => hasPort(port, what));
  };
  const ports = choose(decompiled.ports);
  const left = choose(leftovers.ports);
  if (typed !== undefined && ports.length + left.length === 0) {
    const subjects = findHeld(typed, held);
    return subjects.length > 0
      ? printHeld(subjects, decompiled, options, terminal)
      : sayNothing(decompiled, typed.trim(), terminal, node);
  }
  const leftLines = what === undefined ? describeLeftovers(leftovers, owners) : [];
  if (options.output === 'json') {
    if (ports.length + left.length + leftLines.length === 0) return sayNothing(decompiled, undefined, terminal);
    await terminal.out(formatJson({ mode, ports, ...(leftLines.length > 0 ? { leftovers: leftLines } : {}) }));
    return exitStatus.ok;
  }
  if (ports.length + left.length + leftLines.length === 0) return sayNothing(decompiled, undefined, terminal);
  if (what === undefined) {
    if (ports.length > 0)
      await terminal.out(
        formatRows(decompiledRows(decompiled), { rows: options.limit * rowsPerLine, width: terminal.width }),
      );
    else await sayNothing(decompiled, what, terminal);
    if (mode && ports.length > 0)
      await terminal.out(`\n${count(ports.length, 'Service port')} in ${modeFacts[mode].title}\n`);
    const gap = ports.length > 0 && leftLines.length > 0 ? '\n' : '';
    await terminal.out(gap + leftLines.map((line) => `${printable(line)}\n`).join(''));
    return exitStatus.ok;
  }
  const blocks = [
    ...ports.map((port) => describeDecompiled(port, options.limit)),
    ...left.map((port) => [...describeDecompiled(port, options.limit), leftLine]),
  ];
  await terminal.out(formatDescription(blocks, terminal.colour.out, terminal.width));
  return exitStatus.ok;
}

/** Prints chains and sets that no Service of the dump has, or that all share. */
async function printHeld(
  subjects: readonly SharedSubject[],
  { mode, leftovers }: Decompiled,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (options.output === 'json') {
    await terminal.out(formatJson({ mode, ports: [], subjects }));
    return exitStatus.ok;
  }
  const blocks = subjects.map((subject) => [
    ...describeSharedInWords(subject, options.limit),
    ...leftovers.chains
      .filter(({ family, table, chain }) => {
        return (
          subject.kind === 'chain' &&
          subject.family === family &&
          subject.table === table &&
          subject.name === chain.name
        );
      })
      .map(({ reachedFrom }) => ({ ...leftLine, text: describeLeftChain(reachedFrom) })),
  ]);
  await terminal.out(formatDescription(blocks, terminal.colour.out, terminal.width));
  return exitStatus.ok;
}

function describeLeftChain(reachedFrom: readonly string[]): string {
  return reachedFrom.length === 0
    ? 'left by iptables mode: nothing jumps to it'
    : `left by iptables mode: still reached from ${reachedFrom.join(', ')}`;
}

const leftLine: DescriptionLine = {
  role: 'plain',
  depth: 1,
  text: 'left by iptables mode: the node is in another mode now',
};

async function sayNothing(
  { mode, ports }: Decompiled,
  what: string | undefined,
  terminal: Terminal,
  node?: AskedNode,
): Promise<ExitStatus> {
  const deaf = what !== undefined && node ? findDeafPort(ports, what, node) : undefined;
  const closed = what === undefined ? undefined : findClosedPort(ports, bareName(what));
  if (deaf ?? closed) {
    const text = deaf ? describeDeaf(deaf) : closed ? describeClosed(closed) : '';
    await terminal.err(`error: ${printable(text)}\n`);
    return exitStatus.differs;
  }
  const about = what === undefined ? '' : `, chain or set that matches ${JSON.stringify(what)}`;
  const isForeign = mode === undefined && ports.length === 0 && what === undefined;
  const why = isForeign ? ': it holds no chains, sets or virtual servers of a kube-proxy' : '';
  await terminal.err(`error: the dump shows no Service${printable(about)}${why}\n`);
  return exitStatus.differs;
}
