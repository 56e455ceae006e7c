import { count } from '../../base/format-count.ts';
import { printable } from '../../base/printable.ts';
import { decompile, describeLeftovers, type Decompiled } from '../../describe/decompile.ts';
import { describeSharedInWords, describeShownPort, line } from '../../describe/describe-words.ts';
import { findInDump, type DumpedServices } from '../../describe/find-subject.ts';
import { formatRows, rowsOfDump } from '../../describe/service-table.ts';
import { findOwners } from '../../diff/changes/owners.ts';
import { classifyServers, nameServers } from '../../diff/virtual-servers.ts';
import { type Coverage, lackingNftables, showsRules, type Shown } from '../../dumps/coverage.ts';
import type { Side } from '../../diff/compared-side.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { formatDescription } from '../../report/colours.ts';
import { formatJson } from '../../report/format-json.ts';
import { readNames, type NamedInput } from '../../sides/read-side.ts';
import type { DumpedSide } from '../../sides/stored-side.ts';
import { exitStatus, type ExitStatus } from '../shared/exit-status.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { rowsPerLine, type DescribeOptions } from './describe-command.ts';
import { reportInput } from './messages.ts';

/** Prints the Services that a dump shows; manifests beside it name those of IPVS mode. */
export async function describeDump(
  dump: NamedInput & DumpedSide,
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { side, beside } = dump;
  if (!(await reportInput(dump, options, terminal))) return exitStatus.badInput;
  let names: Side['state'] | undefined;
  if (beside.length > 0) {
    const found = await readNames({ ...options, file: beside }, terminal.readStdin);
    if (!(await reportInput(found, options, terminal)) || !found.cluster) return exitStatus.badInput;
    names = nameServers(side.state, found.cluster);
  }
  const { state, coverage } = side;
  const owners = findOwners(names ? [names, state] : [state]);
  const belongingOf = classifyServers(side, side);
  const read = { ...decompile(state, owners, belongingOf, coverage), state, owners, coverage };
  const belonging = state.virtualServers.map(belongingOf);
  for (const note of notesOf(read, belonging, names !== undefined)) await say(terminal, `note: ${printable(note)}\n`);
  return what === undefined ? printAll(read, options, terminal) : printSubject(what.trim(), read, options, terminal);
}

function notesOf(
  { mode, ports, coverage }: DumpedServices,
  belonging: readonly ReturnType<ReturnType<typeof classifyServers>>[],
  isNamed: boolean,
): readonly string[] {
  const doubtful = belonging.filter((each) => each === 'unshown').length;
  const others = belonging.filter((each) => each === 'other').length;
  const lacking = missingFiles(mode, coverage);
  const isNameless =
    mode !== undefined &&
    modeFacts[mode].namesServices === 'none' &&
    ports.some(({ name }) => /\/(TCP|UDP|SCTP)$/.test(name));
  const which = isNamed ? 'Services that no manifest names are' : 'Services are';
  const advice = isNamed ? '' : ': add manifests with -f to name them';
  const title = mode && modeFacts[mode].title;
  const notes: readonly (readonly [boolean, string])[] = [
    [isNameless, `${which} shown by address, because the state of a node in ${title} holds no names${advice}`],
    [
      doubtful > 0,
      `${doubtful} of the virtual servers may be another program's: add the output of ipset save and ip -j addr to find out`,
    ],
    [
      others > 0,
      `${count(others, 'virtual server')} left out: another program's, on addresses that are neither on kube-ipvs0 nor in kube-proxy's sets`,
    ],
    [lacking.length > 0, `the dump does not hold all of ${lacking.join(', ')}: there may be more Services`],
  ];
  return notes.flatMap(([applies, text]) => (applies ? [text] : []));
}

/** The tools that show the Services of a mode, and that a dump has not got the whole output of. */
function missingFiles(mode: Decompiled['mode'], coverage: Coverage): readonly string[] {
  const missing: { readonly [K in keyof Shown]?: readonly string[] } = {
    iptables: [
      ...(showsRules(coverage, 'ipv4') ? [] : ['iptables-save']),
      ...(showsRules(coverage, 'ipv6') ? [] : ['ip6tables-save']),
    ],
    nftables: lackingNftables(coverage).map((name) => `the ${name} rules of nft list ruleset`),
    sets: coverage.sets ? [] : ['ipset save'],
    virtualServers: coverage.virtualServers ? [] : ['ipvsadm -Sn'],
  };
  const kinds = mode ? modeFacts[mode].serviceKinds : (['iptables', 'sets', 'virtualServers'] as const);
  return kinds.flatMap((kind) => missing[kind] ?? []);
}

/** Prints a table of all Services, and what another mode left. */
async function printAll(read: DumpedServices, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
  const { mode, ports } = read;
  const leftovers = describeLeftovers(read.leftovers);
  if (ports.length === 0 && (options.output === 'text' || leftovers.length === 0)) {
    const why = mode === undefined ? ': it holds no chains, sets or virtual servers of a kube-proxy' : '';
    await terminal.err(`error: the dump shows no Service${why}\n`);
  }
  if (ports.length + leftovers.length === 0) return exitStatus.differs;
  if (options.output === 'json') {
    await terminal.out(formatJson({ mode, ports, leftovers: leftovers.length > 0 ? leftovers : undefined }));
    return exitStatus.ok;
  }
  const limits = { rows: options.limit * rowsPerLine, width: terminal.width };
  const table = ports.length > 0 ? formatRows(rowsOfDump(ports), limits) : '';
  const total = mode && table !== '' ? `\n${count(ports.length, 'Service port')} in ${modeFacts[mode].title}\n` : '';
  const gap = table !== '' && leftovers.length > 0 ? '\n' : '';
  await terminal.out(table + total + gap + leftovers.map((text) => `${printable(text)}\n`).join(''));
  return exitStatus.ok;
}

/** Prints what is asked about: Service ports, or chains and sets that none of them has, or that all share. */
async function printSubject(
  typed: string,
  read: DumpedServices,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { mode, leftovers } = read;
  const found = findInDump(typed, read);
  if (found.kind === 'nothing') {
    await terminal.err(`error: ${printable(found.why)}\n`);
    return exitStatus.differs;
  }
  const { ports, left, subjects } = found;
  if (options.output === 'json') {
    await terminal.out(formatJson({ mode, ports, subjects }));
    return exitStatus.ok;
  }
  const leftLine = (text: string) => line('plain', 1, `left by iptables mode: ${text}`);
  const blocks = [
    ...ports.map((port) => describeShownPort(port, options.limit)),
    ...left.map((port) => [...describeShownPort(port, options.limit), leftLine('the node is in another mode now')]),
    ...(subjects ?? []).map((subject) => [
      ...describeSharedInWords(subject, options.limit),
      ...leftovers.chains
        .filter(({ family, table, chain }) => {
          return subject.family === family && subject.table === table && subject.name === chain.name;
        })
        .map(({ reachedFrom: [first, ...others] }) =>
          leftLine(first === undefined ? 'nothing jumps to it' : `still reached from ${[first, ...others].join(', ')}`),
        ),
    ]),
  ];
  await terminal.out(formatDescription(blocks, terminal.colour.out, terminal.width));
  return exitStatus.ok;
}
