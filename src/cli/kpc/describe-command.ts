import type { Command } from 'commander';
import { count } from '../../base/format-count.ts';
import { printable, quotePrintable, shellWord } from '../../base/printable.ts';
import { describeService } from '../../describe/describe-services.ts';
import { openPaths } from '../../snapshot/files/open.ts';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { describeLeftovers } from '../../snapshot/decompile.ts';
import { decompiledJson, serviceJson } from '../../describe/describe-json.ts';
import { describeServiceInWords, describeSharedInWords, line } from '../../describe/describe-words.ts';
import { flowsJson } from '../../describe/describe-flows.ts';
import { findInDump, findSubject } from '../../describe/find-subject.ts';
import { knowsServices, readDumped, readingJson, type DumpReading, skippedJson } from '../../describe/read-dumped.ts';
import { formatRows, serviceRows, summarizeServices } from '../../describe/service-table.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { summarizeSide } from '../../report/bundle-text.ts';
import { formatDescription } from '../../report/colours.ts';
import { describeFound, formatDump, isAmong } from '../../report/dump-text.ts';
import { formatJson } from '../../report/format-json.ts';
import { describedDump, describedServices, serviceTable, sharedSubjects } from '../../report/outputs/describe.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import type { Reading, Recognised } from '../../snapshot/open/opened.ts';
import { readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import type { Cluster as AskedCluster } from '../../programs/ask-cluster.ts';
import { isName } from '../../base/object-names.ts';
import { isKubectlPlugin } from '../shared/run-commands.ts';
import { isFileName, isPath } from '../shared/path-words.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus, say } from '../shared/terminal.ts';
import { clusterFlags, withCluster, type ClusterOptions } from './cluster-input.ts';
import { addFlags, givenFlags, limitFlag, nodeFlag, outputFlag } from './flags.ts';
import { describeIdleFlags, modeFromWords, namedInputs, withoutDefaultMode } from './input-options.ts';
import { messageFlags, quieten, type MessageOptions, reportInput, refuse } from './messages.ts';

interface DescribeOptions extends SideOptions, MessageOptions, ClusterOptions {
  readonly fromDump?: string;
  readonly fromNode?: string;
  readonly debugImage?: string;
  readonly clusterDomain: string;
  readonly output: 'text' | 'json';
  readonly limit: number;
  readonly rules?: boolean;
}

/** A table may be this many times longer than a list: its rows are short, and it is the result. */
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
  addFlags(command, [
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('the node to describe (default: hostnameOverride, or else the only Node in the input)'),
    flagRow(
      'text',
      '--from-dump <path>',
      'a dump of a node, and nothing else; -f adds manifests that name its Services',
      {
        path: 'read',
      },
    ),
    flagRow(
      'text',
      '--from-node <name>',
      'with --cluster: the dump of a node, which kubectl debug reads in a pod that is removed afterwards',
      { isOfCall: true },
    ),
    flagRow('text', '--debug-image <image>', 'the image of that pod (default: busybox)', {
      isOfCall: true,
      idle: [{ without: '--from-node', what: '--debug-image: only with --from-node' }],
    }),
    flagRow('text', '--cluster-domain <domain>', "the cluster's domain in DNS", { usual: usualDomain }),
    outputFlag(['text', 'json']),
    flagRow('on', '--rules', 'also show the rules, sets and virtual servers, and the environment of containers'),
    limitFlag,
    ...messageFlags,
  ]).action(async (_what: string | undefined, _inputs: readonly string[], given: DescribeOptions) => {
    const quiet = quieten(terminal, given);
    const { what, paths } = await sortArguments(command, given, quiet);
    const dump = given.fromDump === undefined ? [] : [given.fromDump];
    const named = namedInputs(command, [...dump, ...paths], given.file);
    const asked = await withCluster(command, { file: named, terminal: quiet }, readNode(command, given) ?? 'traffic');
    if (!asked) return done(exitStatus.badInput);
    const options = { ...given, ...asked.options };
    if (what !== undefined && options.file.length === 0) {
      command.error(`error: no manifests are named\nwrite "kpc describe ${shellWord(what)} -f FILE", with - for stdin`);
    }
    done(await runDescribe(what, options, givenFlags(command), asked.terminal));
  });
}

/** What asks a node of the cluster for its dump; undefined if no node is named. */
function readNode(command: Command, { cluster, fromNode, debugImage }: DescribeOptions) {
  if (fromNode === undefined) return undefined;
  if (!cluster && !isKubectlPlugin('kpc')) command.error('error: --from-node: only with --cluster');
  if (!isName(fromNode, 'subdomain')) command.error(`error: ${quotePrintable(fromNode)} is not the name of a node`);
  return (asked: AskedCluster) => asked.dumpNode(fromNode, debugImage ?? 'busybox');
}

/** What kubeadm sets, and nearly every cluster has. */
const usualDomain = 'cluster.local';

/** Separates the subject from the inputs. */
async function sortArguments(command: Command, { file, fromDump, node }: DescribeOptions, terminal: Terminal) {
  const { args } = command;
  // If an input is named, a word is the subject, even if a file has the same name.
  const isInput = file === undefined && fromDump === undefined ? isPath : isFileName;
  const asked = args.filter((word) => !isInput(word));
  // As kubectl has it: "describe svc nginx". One word "services" is a chain of nftables mode.
  const isOfKind =
    (asked.length === 2 ? /^(?:svc|services?)$/i : /^(?:svc|service)$/i).test(asked[0] ?? '') && asked.length <= 2;
  const what = isOfKind ? asked[1] : asked[0];
  const others = isOfKind ? asked.slice(2) : asked.slice(1);
  if (!others.every(isPath)) {
    const each = asked.map((word) => quotePrintable(word)).join(' and ');
    command.error(`error: describe is asked about ${each}\nname one thing, and the input with -f`);
  }
  const paths = [...args.filter(isInput), ...others];
  const [first, ...rest] = paths;
  if (what !== undefined || first === undefined || rest.length === 0 || isFileName(first) || first.endsWith('/')) {
    return { what, paths };
  }
  // A folder often has the name of a Service: it is read only if it holds a dump or a bundle.
  if ((await readStoredSide(first, { node })).kind !== 'manifests') return { what, paths };
  const text = `${quotePrintable(first)} is taken for what is asked about: write ${quotePrintable(`./${first}`)} to read it`;
  await say(terminal, `note: ${printable(text)}\n`);
  return { what: first, paths: rest };
}

async function runDescribe(
  what: string | undefined,
  options: DescribeOptions & { readonly file: readonly string[] },
  flags: readonly Flag[],
  terminal: Terminal,
): Promise<ExitStatus> {
  const { fromDump, node } = options;
  const opened = await openPaths({ ...options, into: 'kpc describe -' }, terminal.readStdin);
  const { kind, loaded } = opened;
  if (fromDump !== undefined && kind !== 'dump' && kind !== 'unreadable') {
    const tools = 'iptables-save, ip6tables-save, ipset save, ipvsadm -Sn and ip -j addr';
    const help = `name a file or folder with what ${tools} print on a node, as kpc-apply dump writes it`;
    return refuse(terminal, `${fromDump} is not a dump`, help);
  }
  // A release says which flows are forgotten when the Services of a dump become those of the manifests beside it.
  const dumped = kind === 'dump' ? opened.at('').side : undefined;
  const isChange = dumped?.kind === 'dump' && dumped.flows !== undefined && dumped.named !== undefined;
  const judged = isChange ? flags.filter(({ name }) => name !== '--kubernetes-version') : flags;
  const idle = describeIdleFlags(judged, opened, node);
  if (idle !== undefined) return refuse(terminal, idle);
  if (what === undefined && options.clusterDomain !== usualDomain)
    return refuse(terminal, '--cluster-domain: the table has no DNS names: name a Service');
  const noRules = options.rules ? whyNoRules(kind, what, options.output) : undefined;
  if (noRules !== undefined) return refuse(terminal, `--rules: ${noRules}`);
  const read = opened.at('');
  if (kind === 'dump') {
    if (options.clusterDomain !== usualDomain) return refuse(terminal, '--cluster-domain: a dump shows no DNS names');
    return describeDump(read, opened.leftOut, what, options, terminal);
  }
  // What is printed says which mode it is.
  const reading = options.output === 'text' ? withoutDefaultMode(read) : read;
  const modeFrom = loaded ? modeFromWords(loaded) : '';
  const isRight = await reportInput(reading, options, terminal);
  const view = reading.side;
  if (!isRight || !view || view.kind === 'dump') return exitStatus.badInput;
  await sayRelease(view, reading, terminal);
  return what === undefined
    ? printTable(view, { ...options, modeFrom }, terminal)
    : printSubject(what, view, { ...options, modeFrom }, terminal);
}

/** Why --rules would do nothing; undefined if it does. */
function whyNoRules(kind: Recognised['kind'], what: string | undefined, output: DescribeOptions['output']) {
  if (what === undefined) return 'for a single Service: name one';
  if (kind === 'dump') return 'a dump holds the rules itself: ask about a chain or a set of it';
  return output === 'json' ? 'JSON has them always' : undefined;
}

async function sayRelease({ settings: { release } }: CompiledSnapshot, { diagnostics }: Reading, terminal: Terminal) {
  if (release === newestRelease || diagnostics.some(({ code }) => code === 'kubernetes-version')) return;
  await say(terminal, `note: follows the kube-proxy of Kubernetes ${release}\n`);
}

async function printTable(
  view: CompiledSnapshot,
  options: DescribeOptions & { readonly modeFrom: string },
  terminal: Terminal,
): Promise<ExitStatus> {
  const rows = serviceRows(view);
  if (options.output === 'json') await terminal.out(formatJson(serviceTable, summarizeServices(view)));
  else {
    const table = formatRows(rows, { rows: options.limit * rowsPerLine, width: terminal.width });
    await terminal.out(`${table}\n${printable(summarizeSide(view, options.modeFrom))}\n`);
  }
  return rows.length > 0 ? exitStatus.ok : exitStatus.negative;
}

async function printSubject(
  what: string,
  view: CompiledSnapshot,
  { namespace, limit, output, clusterDomain, rules, modeFrom }: DescribeOptions & { readonly modeFrom: string },
  terminal: Terminal,
): Promise<ExitStatus> {
  const isBare = namespace !== undefined && /^[a-z][a-z0-9-]*(?::[\w-]+)?$/i.test(what);
  const own = isBare ? findSubject(`${namespace}/${what}`, view) : undefined;
  const finding = own && own.kind !== 'nothing' ? own : findSubject(what, view);
  if (finding.kind === 'nothing') {
    await terminal.err(`error: ${printable(finding.why)}\n`);
    return exitStatus.negative;
  }
  const isJson = output === 'json';
  if (finding.kind === 'shared') {
    const { subjects } = finding;
    const blocks = subjects.map((subject) => describeSharedInWords(subject, limit));
    await terminal.out(isJson ? formatJson(sharedSubjects, subjects) : formatDescription(blocks, terminal.colour.out));
    return exitStatus.ok;
  }
  const { matches } = finding;
  const described = (isJson ? matches : matches.slice(0, limit)).map(({ service, labels, because }) => {
    return { because, ...describeService(service, labels, view, clusterDomain) };
  });
  if (isJson) {
    const json = described.map(({ because, ...each }) => ({ because, ...serviceJson(each) }));
    await terminal.out(formatJson(describedServices, json));
  } else {
    const { node, assumed } = view;
    const name = assumed.node ? `${node.name} (assumed)` : node.name;
    const limits = { node: name === '' ? 'a node without a name' : name, limit, hasRules: rules === true };
    const blocks = described.map((each) => {
      const hasRules = limits.hasRules || each.because.some(({ kind }) => ofKernel.has(kind));
      return describeServiceInWords(each, each.because, { ...limits, hasRules });
    });
    const hidden = matches.length - described.length;
    const closing = [
      ...(modeFrom === '' ? [] : [`mode ${view.mode}${modeFrom}`]),
      ...(rules ? [] : ['--rules shows what is in the kernel']),
    ];
    const rest = [
      ...(hidden > 0 ? [[line('dim', 0, `… and ${count(hidden, 'more Service')}`)]] : []),
      ...(closing.length === 0 ? [] : [[line('dim', 0, closing.join('; '))]]),
    ];
    await terminal.out(formatDescription([...blocks, ...rest], terminal.colour.out, terminal.width));
  }
  return exitStatus.ok;
}

/** What is asked about is in the kernel, and is shown there. */
const ofKernel: ReadonlySet<string> = new Set(['chain', 'affinity-set', 'rule', 'rule-elsewhere']);

async function describeDump(
  reading: Reading,
  leftOut: Diagnostic | undefined,
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { side } = reading;
  if (!(await reportInput(reading, options, terminal)) || side?.kind !== 'dump') return exitStatus.badInput;
  if (leftOut) await say(terminal, `note: left out its manifests: ${printable(leftOut.text)}\n`);
  const read = readDumped(side.named ? side.namedBy(side.named) : side);
  for (const note of read.notes) await say(terminal, `note: ${printable(note)}\n`);
  return what === undefined
    ? printAllOfDump(read, options, terminal)
    : printSubjectOfDump(what.trim(), read, options, terminal);
}

/** Prints a table of all Services, the leftovers of another mode, and the flows that are stale. */
async function printAllOfDump(read: DumpReading, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
  const { dump, flows, nothing } = read;
  const { ports, leftovers } = dump.shown;
  const hasLeftovers = describeLeftovers(leftovers).length > 0;
  if (nothing && (options.output === 'text' || !hasLeftovers)) {
    if (hasLeftovers) await say(terminal, `note: ${nothing.text}\n`);
    else await terminal.err(`error: ${nothing.text}\n${nothing.help === undefined ? '' : `  help: ${nothing.help}\n`}`);
  }
  if (ports.length === 0 && !hasLeftovers && !(flows && knowsServices(dump)) && !dump.log) return exitStatus.negative;
  if (options.output === 'json') {
    await terminal.out(formatJson(describedDump, readingJson(read)));
    return exitStatus.ok;
  }
  const { limit } = options;
  const format = { limit, rows: limit * rowsPerLine, width: terminal.width, isColoured: terminal.colour.out };
  await terminal.out(formatDump(read, format));
  return exitStatus.ok;
}

/** Prints the requested Service ports, or chains and sets that belong to none or to all of them. */
async function printSubjectOfDump(
  typed: string,
  read: DumpReading,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { mode, leftovers } = read.dump.shown;
  const found = findInDump(typed, read.dump);
  if (found.kind === 'nothing') {
    await terminal.err(`error: ${printable(found.why)}\n`);
    return exitStatus.negative;
  }
  const { ports, subjects } = found;
  if (options.output === 'json') {
    const left = new Set(leftovers.ports);
    const shown = ports.filter((port) => !left.has(port)).map(decompiledJson);
    await terminal.out(
      formatJson(describedDump, {
        mode,
        ports: shown,
        subjects,
        ...skippedJson(read),
        flows: read.flows && flowsJson(read.flows, isAmong(ports)),
      }),
    );
    return exitStatus.ok;
  }
  const blocks = describeFound(ports, subjects ?? [], read, options.limit);
  await terminal.out(formatDescription(blocks, terminal.colour.out, terminal.width));
  return exitStatus.ok;
}
