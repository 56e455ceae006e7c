import { count } from '../../base/format-count.ts';
import { printable, quotePrintable } from '../../base/printable.ts';
import { Option, type Command } from 'commander';
import type { View } from '../../describe/describe-services.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { formatDescription } from '../../report/colours.ts';
import { addLimit } from './diff-command.ts';
import type { NamedInput, SideOptions } from '../../sides/read-side.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { formatJson } from '../../report/format-json.ts';
import { addInputOptions } from './input-options.ts';
import { isFileName, isPath } from '../shared/path-words.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { addMessageOptions, quieten, type MessageOptions, reportInput } from './messages.ts';
import { refuse } from '../shared/refuse.ts';

/** The options of kpc describe. */
export interface DescribeOptions extends SideOptions, MessageOptions {
  readonly bundle?: string;
  readonly fromDump?: string;
  readonly clusterDomain: string;
  readonly output: 'text' | 'json';
  readonly limit: number;
}

/** A table has this many rows per line of a list: rows are short, and the table is what was asked for. */
export const rowsPerLine = 5;

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
  addInputOptions(command, 'looks').option(
    '--node <name>',
    'the node to describe (default: hostnameOverride, or else the only Node in the input)',
  );
  // The options so far are for manifests: they change nothing in a bundle or a dump.
  const ofManifests = command.options.map((option) => option.attributeName());
  command
    .addOption(new Option('--bundle <folder>', 'describe a bundle instead of manifests').conflicts(ofManifests))
    .addOption(
      new Option(
        '--from-dump <folder>',
        'describe the Services in a dump of a node, as far as the dump shows them; -f adds manifests that name its Services',
      ).conflicts([...ofManifests.filter((name) => name !== 'file'), 'bundle']),
    )
    .option('--cluster-domain <domain>', "the cluster's domain in DNS", 'cluster.local')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(addLimit());
  addMessageOptions(command).action(
    async (_what: string | undefined, _inputs: readonly string[], all: DescribeOptions) => {
      // Inputs named here replace those of kpc.yaml.
      const isGiven = command.getOptionValueSource('file') === 'cli';
      const { what, paths } = await settleFirst(sortArguments(command, all), all, terminal);
      const { file: named, ...others } = all;
      const namesOther = paths.length > 0 || all.bundle !== undefined || all.fromDump !== undefined;
      const file = [...paths, ...(isGiven || !namesOther ? (named ?? []) : [])];
      const options = file.length === 0 ? others : { ...others, file };
      if (what !== undefined && namesNoInput(options)) {
        const shown = /^[\w./:-]+$/.test(what) ? what : quotePrintable(what);
        command.error(`error: no manifests are named\nwrite "kpc describe ${shown} -f FILE", with - for stdin`);
      }
      const flags = command.options
        .filter((option) => ofManifests.includes(option.attributeName()) && !sharedFlags.has(option.attributeName()))
        .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
        .map(({ long }) => long ?? '');
      done(await runDescribe(what, options, flags, quieten(terminal, options)));
    },
  );
}

/** The flags for manifests that also apply to a bundle or a dump. */
const sharedFlags: ReadonlySet<string> = new Set(['file', 'node']);

/** Which argument is the subject, and which are inputs. */
interface SortedArguments {
  readonly what: string | undefined;
  readonly paths: readonly string[];
}

/**
 * If all arguments are names of files, the first may be what is asked about all the same: a folder is often called as a
 * Service is. It is read only if it holds a dump or a bundle.
 */
async function settleFirst(
  sorted: SortedArguments,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<SortedArguments> {
  const [first, ...others] = sorted.paths;
  if (sorted.what !== undefined || first === undefined || others.length === 0 || !couldBeAsked(first)) return sorted;
  const { readStoredSide } = await import('../../sides/read-side.ts');
  if ((await readStoredSide(first, { node: options.node, stdin: undefined })).kind !== 'manifests') return sorted;
  const text = `${quotePrintable(first)} is taken for what is asked about: write ${quotePrintable(`./${first}`)} to read it`;
  await say(quieten(terminal, options), `note: ${printable(text)}\n`);
  return { what: first, paths: others };
}

/** Whether a word can name a Service, an address or a port, though a file or folder has that name. */
function couldBeAsked(word: string): boolean {
  return /^[\w:[][\w.:/[\]-]*$/.test(word) && !/\.(?:ya?ml|json|txt|log)$/i.test(word) && !word.endsWith('/');
}

function sortArguments(command: Command, options: DescribeOptions): SortedArguments {
  const [first, ...others] = command.args;
  // If an input is named, a word is the subject, even if a file has the same name.
  const isInput = (word: string): boolean => (namesNoInput(options) ? isPath(word) : isFileName(word));
  const rest = first !== undefined && isInput(first) ? command.args : others;
  const what = rest === command.args ? rest.find((word) => !isInput(word)) : first;
  const paths = rest.filter((word) => word !== what);
  const strays = paths.filter((word) => !isPath(word));
  if (strays.length > 0) {
    const { length } = command.args;
    command.error(`error: too many arguments for 'describe'. Expected 1 argument but got ${length}.`);
  }
  return { what, paths };
}

/** Whether no flag names an input. */
function namesNoInput({ file, bundle, fromDump }: DescribeOptions): boolean {
  return file === undefined && bundle === undefined && fromDump === undefined;
}

async function runDescribe(
  what: string | undefined,
  options: DescribeOptions,
  flags: readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  const { recogniseInputs } = await import('../../sides/read-side.ts');
  const { bundle, fromDump, file = [], node } = options;
  const paths = [...(bundle === undefined ? [] : [bundle]), ...(fromDump === undefined ? [] : [fromDump]), ...file];
  const stdin = paths.includes('-') ? await terminal.readStdin() : undefined;
  const input = await recogniseInputs(paths, { node, stdin });
  const refusal = refuseInput(input, options, flags);
  if (refusal) return refuse(terminal, ...refusal);
  if (input.kind === 'dump') {
    const { describeDump } = await import('./describe-dump.ts');
    return describeDump(input.stored, input.manifests, what, options, terminal);
  }
  if (input.kind === 'mixed') return exitStatus.badInput;
  const view = await readView(input, options, terminal);
  if (!view) return exitStatus.badInput;
  return what === undefined ? printTable(view, options, terminal) : printSubject(what, view, options, terminal);
}

/** Why an input does not match the flags, and what to do about it; undefined if it does. */
function refuseInput(
  input: NamedInput,
  options: DescribeOptions,
  flags: readonly string[],
): readonly [wrong: string, help?: string] | undefined {
  const { bundle, fromDump, file } = options;
  if (input.kind === 'unreadable') return undefined;
  if (input.kind === 'mixed') return [input.text];
  if (bundle !== undefined && input.kind !== 'bundle')
    return [`${bundle} is not a bundle`, 'name one that kpc compile -o wrote'];
  if (fromDump !== undefined && input.kind !== 'dump') {
    return [
      `${fromDump} is not a dump`,
      'name a file or folder with what iptables-save, ip6tables-save, ipset save, ipvsadm -Sn and ip -j addr print on a node, as kpc-apply dump writes it',
    ];
  }
  if (input.kind === 'manifests' || flags.length === 0) return undefined;
  const name = bundle ?? fromDump ?? file?.[0] ?? 'the input';
  return [`${flags.join(', ')}: only for manifests, and ${name} is a ${input.kind}`];
}

/** The Services to describe; undefined if they cannot be read, which has been reported. */
async function readView(
  input: Exclude<NamedInput, { kind: 'dump' | 'mixed' }>,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<View | undefined> {
  const { compileInputs } = await import('../../sides/read-side.ts');
  const reading =
    input.kind === 'manifests'
      ? await compileInputs({ ...options, into: 'kpc describe -' }, terminal.readStdin)
      : input.stored.reading;
  const { side } = reading;
  if (!(await reportInput(reading, options, terminal)) || !side?.services) return undefined;
  const { findOwners } = await import('../../diff/changes/owners.ts');
  const { compileState } = await import('../../compile/compile-node.ts');
  const { findShown } = await import('../../describe/decompile.ts');
  const { services, state, labels, families } = side;
  const { release } = services.settings;
  if (release !== newestRelease && !reading.diagnostics.some(({ code }) => code === 'kubernetes-version')) {
    await say(terminal, `note: follows the kube-proxy of Kubernetes ${release}\n`);
  }
  const owners = findOwners(labels ? [labels, state] : [state]);
  return {
    state,
    families,
    services,
    objects: 'inputs' in reading ? reading.inputs : undefined,
    owners,
    shownOf: findShown(state, owners),
    compile: (cluster) => compileState(cluster, services.node, services.settings, families, undefined),
  };
}

async function printTable(view: View, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
  const { formatRows, serviceRows, summarizeServices } = await import('../../describe/service-table.ts');
  const rows = serviceRows(view);
  if (options.output === 'json') await terminal.out(formatJson(summarizeServices(view)));
  else {
    const { summarizeSide } = await import('../../report/bundle-text.ts');
    const table = formatRows(rows, { rows: options.limit * rowsPerLine, width: terminal.width });
    await terminal.out(`${table}\n${printable(summarizeSide(view))}\n`);
  }
  return rows.length > 0 ? exitStatus.ok : exitStatus.differs;
}

async function printSubject(
  what: string,
  view: View,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { findSubject } = await import('../../describe/find-subject.ts');
  const words = await import('../../describe/describe-words.ts');
  const { describeService } = await import('../../describe/describe-services.ts');
  const { namespace, limit } = options;
  const isBare = namespace !== undefined && /^[a-z][a-z0-9-]*(?::[\w-]+)?$/i.test(what);
  const own = isBare ? findSubject(`${namespace}/${what}`, view) : undefined;
  const finding = own && own.kind !== 'nothing' ? own : findSubject(what, view);
  if (finding.kind === 'nothing') {
    await terminal.err(`error: ${printable(finding.why)}\n`);
    return exitStatus.differs;
  }
  const isJson = options.output === 'json';
  const { out } = terminal.colour;
  if (finding.kind === 'shared') {
    const { subjects } = finding;
    const blocks = subjects.map((subject) => words.describeSharedInWords(subject, limit));
    await terminal.out(isJson ? formatJson(subjects) : formatDescription(blocks, out));
    return exitStatus.ok;
  }
  const { matches } = finding;
  const described = (isJson ? matches : matches.slice(0, limit)).map(({ service, labels, because }) => {
    return { because, ...describeService(service, labels, view, options.clusterDomain) };
  });
  if (isJson) await terminal.out(formatJson(described));
  else {
    const { node, assumed } = view.services;
    const name = assumed.node ? `${node.name} (assumed)` : node.name;
    const limits = { node: name === '' ? 'a node without a name' : name, limit };
    const blocks = described.map((each) => words.describeServiceInWords(each, each.because, limits));
    const hidden = matches.length - described.length;
    const rest = hidden > 0 ? [[words.line('dim', 0, `… and ${count(hidden, 'more Service')}`)]] : [];
    await terminal.out(formatDescription([...blocks, ...rest], out, terminal.width));
  }
  return exitStatus.ok;
}
