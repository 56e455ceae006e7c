import { Option, type Command } from 'commander';
import { count } from '../../base/format-count.ts';
import { printable, quotePrintable } from '../../base/printable.ts';
import { type View, describeService } from '../../describe/describe-services.ts';
import { compileState } from '../../compile/compile-node.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { decompile, describeLeftovers, findShown, type Decompiled } from '../../describe/decompile.ts';
import {
  describeServiceInWords,
  describeSharedInWords,
  describeShownPort,
  line,
} from '../../describe/describe-words.ts';
import { findInDump, findSubject, type DumpedServices } from '../../describe/find-subject.ts';
import { formatRows, rowsOfDump, serviceRows, summarizeServices } from '../../describe/service-table.ts';
import { findOwners } from '../../diff/changes/owners.ts';
import { classifyServers, nameServers, type ServerBelonging } from '../../diff/virtual-servers.ts';
import { type Coverage, lackingNftables, showsRules, type Shown } from '../../dumps/coverage.ts';
import type { LeftChain } from '../../kube-proxy/chains.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { summarizeSide } from '../../report/bundle-text.ts';
import { formatDescription } from '../../report/colours.ts';
import { formatJson } from '../../report/format-json.ts';
import { compileAs } from '../../sides/compile-side.ts';
import {
  readNames,
  readStoredSide,
  recogniseInputs,
  type NamedInput,
  type SideOptions,
} from '../../sides/read-side.ts';
import type { DumpedSide, SideReading } from '../../sides/stored-side.ts';
import { isFileName, isPath } from '../shared/path-words.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus, say } from '../shared/terminal.ts';
import { addLimit, addInputOptions, flagsOfManifests, namedInputs } from './input-options.ts';
import { addMessageOptions, quieten, type MessageOptions, reportInput, refuse } from './messages.ts';

/** The options of kpc describe. */
interface DescribeOptions extends SideOptions, MessageOptions {
  readonly fromDump?: string;
  readonly clusterDomain: string;
  readonly output: 'text' | 'json';
  readonly limit: number;
}

/** A table has this many rows per line of a list: rows are short, and the table is what was asked for. */
const rowsPerLine = 5;

export function addDescribeCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('describe')
    .summary('Show a Service and everything that comes from it, or which Service an address, chain or set belongs to.')
    .description(
      'Show a Service and everything that comes from it: the endpoints that a node uses and why, virtual servers, set ' +
        'entries, chains and rules, DNS names. Without <what>, print a table of all Services. Exit status 1 if nothing ' +
        'is found.',
    )
    .argument(
      '[what]',
      'a Service (name, namespace/name, either with :port), an address, address:port, a node port, an endpoint, a ' +
        'chain, a set or an entry of one, a DNS name, or a line of iptables-save in quotes',
    )
    .argument('[input...]', 'what to look at, as with -f: manifests, a bundle, or a dump of a node');
  addInputOptions(command, 'looks')
    .option('--node <name>', 'the node to describe (default: hostnameOverride, or else the only Node in the input)')
    .option('--from-dump <path>', 'a dump of a node, and nothing else; -f adds manifests that name its Services')
    .option('--cluster-domain <domain>', "the cluster's domain in DNS", 'cluster.local')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(addLimit());
  addMessageOptions(command).action(
    async (_what: string | undefined, _inputs: readonly string[], given: DescribeOptions) => {
      const quiet = quieten(terminal, given);
      const { what, paths } = await sortArguments(command, given, quiet);
      const dump = given.fromDump === undefined ? [] : [given.fromDump];
      const options = { ...given, file: namedInputs(command, [...dump, ...paths], given.file) };
      if (what !== undefined && options.file.length === 0) {
        const shown = /^[\w./:-]+$/.test(what) ? what : quotePrintable(what);
        command.error(`error: no manifests are named\nwrite "kpc describe ${shown} -f FILE", with - for stdin`);
      }
      done(await runDescribe(what, options, flagsOfManifests(command), quiet));
    },
  );
}

/** Sorts the arguments: `what` is the subject, `paths` are the inputs. */
async function sortArguments(command: Command, { file, fromDump, node }: DescribeOptions, terminal: Terminal) {
  const { args } = command;
  // If an input is named, a word is the subject, even if a file has the same name.
  const isInput = file === undefined && fromDump === undefined ? isPath : isFileName;
  const what = args.find((word) => !isInput(word));
  const paths = args.filter((word) => word !== what);
  if (!paths.every(isPath)) {
    command.error(`error: too many arguments for 'describe'. Expected 1 argument but got ${args.length}.`);
  }
  const [first, ...others] = paths;
  if (what !== undefined || first === undefined || others.length === 0 || isFileName(first) || first.endsWith('/')) {
    return { what, paths };
  }
  // A folder often has the name of a Service: it is read only if it holds a dump or a bundle.
  if ((await readStoredSide(first, { node })).kind !== 'manifests') return { what, paths };
  const text = `${quotePrintable(first)} is taken for what is asked about: write ${quotePrintable(`./${first}`)} to read it`;
  await say(terminal, `note: ${printable(text)}\n`);
  return { what: first, paths: others };
}

async function runDescribe(
  what: string | undefined,
  options: DescribeOptions & { readonly file: readonly string[] },
  flags: readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  const { fromDump, file, node } = options;
  const input = await recogniseInputs(file, { node, readStdin: terminal.readStdin });
  const { kind } = input;
  if (fromDump !== undefined && kind !== 'dump' && kind !== 'unreadable') {
    const tools = 'iptables-save, ip6tables-save, ipset save, ipvsadm -Sn and ip -j addr';
    const help = `name a file or folder with what ${tools} print on a node, as kpc-apply dump writes it`;
    return refuse(terminal, `${fromDump} is not a dump`, help);
  }
  const strays =
    kind === 'bundle' || kind === 'dump' ? flags.filter((flag) => flag !== '--file' && flag !== '--node') : [];
  if (strays.length > 0)
    return refuse(terminal, `${strays.join(', ')}: only for manifests, and ${file[0]} is a ${kind}`);
  if (input.kind === 'dump') return describeDump(input, what, options, terminal);
  const reading =
    kind === 'manifests'
      ? compileAs('-f', await loadInputs({ ...options, into: 'kpc describe -' }, terminal.readStdin), options)
      : input;
  const isRight = await reportInput(reading, options, terminal);
  const view = isRight ? await viewOf(reading, terminal) : undefined;
  if (!view) return exitStatus.badInput;
  return what === undefined ? printTable(view, options, terminal) : printSubject(what, view, options, terminal);
}

/** The Services to describe; undefined if there are none. */
async function viewOf({ side, diagnostics, inputs }: SideReading, terminal: Terminal): Promise<View | undefined> {
  if (!side?.services) return undefined;
  const { services, state, labels } = side;
  const { node, settings } = services;
  const { release } = settings;
  if (release !== newestRelease && !diagnostics.some(({ code }) => code === 'kubernetes-version')) {
    await say(terminal, `note: follows the kube-proxy of Kubernetes ${release}\n`);
  }
  const owners = findOwners(labels ? [labels, state] : [state]);
  return {
    state,
    families: side.families,
    services,
    objects: inputs,
    owners,
    shownOf: findShown(state, owners),
    compile: (cluster) => compileState(cluster, node, settings, side.families),
  };
}

async function printTable(view: View, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
  const rows = serviceRows(view);
  if (options.output === 'json') await terminal.out(formatJson(summarizeServices(view)));
  else {
    const table = formatRows(rows, { rows: options.limit * rowsPerLine, width: terminal.width });
    await terminal.out(`${table}\n${printable(summarizeSide(view))}\n`);
  }
  return rows.length > 0 ? exitStatus.ok : exitStatus.differs;
}

async function printSubject(
  what: string,
  view: View,
  { namespace, limit, output, clusterDomain }: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const isBare = namespace !== undefined && /^[a-z][a-z0-9-]*(?::[\w-]+)?$/i.test(what);
  const own = isBare ? findSubject(`${namespace}/${what}`, view) : undefined;
  const finding = own && own.kind !== 'nothing' ? own : findSubject(what, view);
  if (finding.kind === 'nothing') {
    await terminal.err(`error: ${printable(finding.why)}\n`);
    return exitStatus.differs;
  }
  const isJson = output === 'json';
  if (finding.kind === 'shared') {
    const { subjects } = finding;
    const blocks = subjects.map((subject) => describeSharedInWords(subject, limit));
    await terminal.out(isJson ? formatJson(subjects) : formatDescription(blocks, terminal.colour.out));
    return exitStatus.ok;
  }
  const { matches } = finding;
  const described = (isJson ? matches : matches.slice(0, limit)).map(({ service, labels, because }) => {
    return { because, ...describeService(service, labels, view, clusterDomain) };
  });
  if (isJson) await terminal.out(formatJson(described));
  else {
    const { node, assumed } = view.services;
    const name = assumed.node ? `${node.name} (assumed)` : node.name;
    const limits = { node: name === '' ? 'a node without a name' : name, limit };
    const blocks = described.map((each) => describeServiceInWords(each, each.because, limits));
    const hidden = matches.length - described.length;
    const rest = hidden > 0 ? [[line('dim', 0, `… and ${count(hidden, 'more Service')}`)]] : [];
    await terminal.out(formatDescription([...blocks, ...rest], terminal.colour.out, terminal.width));
  }
  return exitStatus.ok;
}

/** Prints the Services that a dump shows; manifests beside it name those of IPVS mode. */
async function describeDump(
  dump: NamedInput & DumpedSide,
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { side, beside } = dump;
  if (!(await reportInput(dump, options, terminal))) return exitStatus.badInput;
  let names: DumpedServices['state'] | undefined;
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
  return what === undefined
    ? printAllOfDump(read, options, terminal)
    : printSubjectOfDump(what.trim(), read, options, terminal);
}

/** What a reader of a dump's Services should know. */
function notesOf(
  { mode, ports, coverage }: DumpedServices,
  belonging: readonly ServerBelonging[],
  isNamed: boolean,
): readonly string[] {
  const notes: string[] = [];
  const facts = mode && modeFacts[mode];
  if (facts?.namesServices === 'none' && ports.some(({ name }) => /\/(TCP|UDP|SCTP)$/.test(name))) {
    const which = isNamed ? 'Services that no manifest names are' : 'Services are';
    const advice = isNamed ? '' : ': add manifests with -f to name them';
    notes.push(`${which} shown by address, because the state of a node in ${facts.title} holds no names${advice}`);
  }
  const doubtful = belonging.filter((each) => each === 'unshown').length;
  if (doubtful > 0) {
    const advice = 'add the output of ipset save and ip -j addr to find out';
    notes.push(`${doubtful} of the virtual servers may be another program's: ${advice}`);
  }
  const others = belonging.filter((each) => each === 'other').length;
  if (others > 0) {
    const why = "another program's, on addresses that are neither on kube-ipvs0 nor in kube-proxy's sets";
    notes.push(`${count(others, 'virtual server')} left out: ${why}`);
  }
  const lacking = missingFiles(mode, coverage);
  if (lacking.length > 0) {
    notes.push(`the dump does not hold all of ${lacking.join(', ')}: there may be more Services`);
  }
  return notes;
}

/** The tools that show the Services of a mode, and that a dump has not got the whole output of. */
function missingFiles(mode: Decompiled['mode'], coverage: Coverage): readonly string[] {
  const missing: { readonly [K in keyof Shown]?: readonly string[] } = {
    iptables: saveTools.flatMap(([family, tool]) => (showsRules(coverage, family) ? [] : [tool])),
    nftables: lackingNftables(coverage).map((name) => `the ${name} rules of nft list ruleset`),
    sets: coverage.sets ? [] : ['ipset save'],
    virtualServers: coverage.virtualServers ? [] : ['ipvsadm -Sn'],
  };
  const kinds = mode ? modeFacts[mode].serviceKinds : (['iptables', 'sets', 'virtualServers'] as const);
  return kinds.flatMap((kind) => missing[kind] ?? []);
}

const saveTools = [
  ['ipv4', 'iptables-save'],
  ['ipv6', 'ip6tables-save'],
] as const;

/** Prints a table of all Services, and what another mode left. */
async function printAllOfDump(read: DumpedServices, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
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
async function printSubjectOfDump(
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
  const { ports, subjects } = found;
  const left = new Set(leftovers.ports);
  if (options.output === 'json') {
    await terminal.out(formatJson({ mode, ports: ports.filter((port) => !left.has(port)), subjects }));
    return exitStatus.ok;
  }
  const leftLine = (text: string) => line('plain', 1, `left by iptables mode: ${text}`);
  const leftChain = ({ reachedFrom }: LeftChain): string =>
    reachedFrom.length === 0 ? 'nothing jumps to it' : `still reached from ${reachedFrom.join(', ')}`;
  const blocks = [
    ...ports.map((port) => [
      ...describeShownPort(port, options.limit),
      ...(left.has(port) ? [leftLine('the node is in another mode now')] : []),
    ]),
    ...(subjects ?? []).map((subject) => [
      ...describeSharedInWords(subject, options.limit),
      ...leftovers.chains
        .filter((each) => each.family === subject.family && each.table === subject.table)
        .filter(({ chain }) => chain.name === subject.name)
        .map((each) => leftLine(leftChain(each))),
    ]),
  ];
  await terminal.out(formatDescription(blocks, terminal.colour.out, terminal.width));
  return exitStatus.ok;
}
