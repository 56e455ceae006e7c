import { quotePrintable } from '../../base/printable.ts';
import type { Command } from 'commander';
import { Option } from 'commander';
import type { Decompiled } from '../../describe/decompile.ts';
import type { Finding } from '../../describe/find-subject.ts';
import type { View } from '../../describe/view.ts';
import { nearest } from '../../describe/suggest.ts';
import { oneLine } from '../../diff/one-line.ts';
import type { ObjectKind } from '../../kube-proxy/modes.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { formatDescription } from '../../report/description-text.ts';
import { addLimit } from './diff-command.ts';
import type { Coverage } from '../../diff/side.ts';
import { tellsNftables, tellsRules } from '../../diff/side.ts';
import type { SideOptions, SideReading } from '../../sides/read-side.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { formatJson } from '../../report/format-json.ts';
import { exitStatus } from '../shared/exit-status.ts';
import { addInputOptions } from './input-options.ts';
import { isPath, isServiceWord } from '../shared/near-misses.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { addMessageOptions, failsStrictly, makeStrict, quieten, type MessageOptions } from './message-options.ts';

interface DescribeOptions extends SideOptions, MessageOptions {
  readonly bundle?: string;
  readonly fromDump?: string;
  readonly clusterDomain: string;
  readonly output: 'text' | 'json';
  readonly limit: number;
}

/** How many times as many rows a table has as a list has lines: a row is short, and a table is what was asked for. */
const rowsPerLine = 5;

export function addDescribeCommand(program: Command, terminal: Terminal, done: (status: ExitStatus) => void): void {
  const command = program
    .command('describe')
    .description(
      'Show a Service and everything that comes from it: the endpoints that a node uses and why, virtual servers, set ' +
        'entries, chains and rules, DNS names. Without <what>, print a table of all Services. Exit status 1 if nothing ' +
        'is found.',
    )
    .argument(
      '[what]',
      'a Service (name, namespace/name, either with :port), an address, address:port, a node port, an endpoint, a ' +
        'chain, a set or an entry of one, a DNS name, or a line of iptables-save in quotes',
    );
  addInputOptions(command)
    // A line of iptables-save begins like an option.
    .allowUnknownOption()
    .allowExcessArguments()
    .option('--node <name>', 'the node to describe (default: hostnameOverride, or else the only Node in the input)');
  // All that there is by now is for manifests: what is compiled or in a kernel already does not go by it.
  const ofManifests = command.options.map((option) => option.attributeName());
  command
    .addOption(new Option('--bundle <folder>', 'describe a bundle instead of manifests').conflicts(ofManifests))
    .addOption(
      new Option(
        '--from-dump <folder>',
        'describe the Services in a dump of a node, as far as the dump shows them',
      ).conflicts([...ofManifests, 'bundle']),
    )
    .option('--cluster-domain <domain>', "the cluster's domain in DNS", 'cluster.local')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(addLimit());
  addMessageOptions(command).action(async (what: string | undefined, options: DescribeOptions) => {
    refuseStrayWords(command);
    if (what !== undefined && namesNoInput(options)) {
      if (isPath(what)) command.error(`error: no manifests are named: write -f before ${quotePrintable(what)}`);
      const shown = /^[\w./:-]+$/.test(what) ? what : quotePrintable(what);
      command.error(`error: no manifests are named: write "kpc describe ${shown} -f FILE", with - for stdin`);
    }
    done(await runDescribe(what, options, quieten(terminal, options)));
  });
}

/** What the parser would say, did it not let options pass for the sake of a line of iptables-save. */
function refuseStrayWords(command: Command): void {
  const flag = command.args.find((word) => /^-(?![AI] )./.test(word));
  if (flag !== undefined) {
    const [name = ''] = flag.split('=', 1);
    const flags = command.options.flatMap(({ long }) => long ?? []);
    const near = name.startsWith('--') ? nearest(name, flags) : [];
    const hint = near.length > 0 ? `\n(Did you mean ${near.join(' or ')}?)` : '';
    command.error(`error: unknown option '${flag}'${hint}`);
  }
  const { length } = command.args;
  if (length > 1) command.error(`error: too many arguments for 'describe'. Expected 1 argument but got ${length}.`);
}

/** Whether no flag says where the Services are. */
function namesNoInput({ file, bundle, fromDump }: DescribeOptions): boolean {
  return file === undefined && bundle === undefined && fromDump === undefined;
}

async function runDescribe(
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (options.fromDump !== undefined) return describeDump(options.fromDump, what, options, terminal);
  const view = await readView(options, terminal);
  if (!view) return exitStatus.badInput;
  return what === undefined ? printTable(view, options, terminal) : printSubject(what, view, options, terminal);
}

/** The Services to describe; undefined where they cannot be read, which has been said. */
async function readView(options: DescribeOptions, terminal: Terminal): Promise<View | undefined> {
  const { compileInputs, readStoredSide } = await import('../../sides/read-side.ts');
  let reading: SideReading | undefined;
  if (options.bundle === undefined) reading = await compileInputs(options, terminal.readStdin);
  else {
    const stored = await readStoredSide(options.bundle);
    if (stored.kind !== 'bundle' && stored.kind !== 'unreadable') {
      await terminal.err(`kpc: error: ${options.bundle} is not a bundle: kpc compile -o writes one\n`);
      return undefined;
    }
    reading = stored.reading;
  }
  await reportDiagnostics(makeStrict(reading.diagnostics, options), reading.files, terminal);
  const { side } = reading;
  if (!side?.services || failsStrictly(reading.diagnostics, options)) return undefined;
  const { findOwners } = await import('../../changes/owners.ts');
  const { compileState } = await import('../../compile/compile-node.ts');
  const { services, state, labels, families } = side;
  const { release } = services.settings;
  if (release !== newestRelease && !reading.diagnostics.some(({ code }) => code === 'kubernetes-version')) {
    await say(terminal, `kpc: note: by the kube-proxy of Kubernetes ${release}\n`);
  }
  return {
    state,
    services,
    owners: findOwners(labels ? [labels, state] : [state]),
    compile: (cluster) => compileState(cluster, services.node, services.settings, families, undefined),
  };
}

async function printTable(view: View, options: DescribeOptions, terminal: Terminal): Promise<ExitStatus> {
  const { formatRows, serviceRows, summarizeServices } = await import('../../describe/service-table.ts');
  const rows = serviceRows(view);
  await terminal.out(
    options.output === 'json' ? formatJson(summarizeServices(view)) : formatRows(rows, options.limit * rowsPerLine),
  );
  return rows.length > 0 ? exitStatus.ok : exitStatus.differs;
}

async function printSubject(
  what: string,
  view: View,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { findSubject } = await import('../../describe/find-subject.ts');
  const { namespace } = options;
  const isBare = namespace !== undefined && /^[a-z][a-z0-9-]*(?::[\w-]+)?$/i.test(what);
  const own = isBare ? findSubject(`${namespace}/${what}`, view) : undefined;
  const finding = own && own.kind !== 'nothing' ? own : findSubject(what, view);
  if (finding.kind === 'nothing') {
    const { describeNothing } = await import('../../describe/describe-words.ts');
    await terminal.err(`kpc: ${oneLine(describeNothing(what, finding))}${adviseOnKind(what)}\n`);
    return exitStatus.differs;
  }
  await terminal.out(await formatFinding(finding, view, options, terminal));
  return exitStatus.ok;
}

/** What kubectl would take, and kpc does not. */
function adviseOnKind(what: string): string {
  if (isServiceWord(what) || what === 'all') return '; without any name, kpc describe prints a table of all Services';
  const [, kind] = /^([a-z]+)\/[\w.-]+$/i.exec(what) ?? [];
  const isOther =
    kind !== undefined &&
    /^(?:po|pods?|deploy|deployments?|sts|statefulsets?|ds|daemonsets?|no|nodes?|ing|ingress|ep|endpoints?)$/i.test(
      kind,
    );
  return isOther ? '; kpc describes Services, and what comes of them' : '';
}

async function formatFinding(
  finding: Exclude<Finding, { kind: 'nothing' }>,
  view: View,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<string> {
  const words = await import('../../describe/describe-words.ts');
  const { describeService } = await import('../../describe/describe-services.ts');
  const isJson = options.output === 'json';
  switch (finding.kind) {
    case 'shared':
      if (isJson) return formatJson(finding.subjects);
      return formatDescription(
        finding.subjects.map((subject) => words.describeSharedInWords(subject, options.limit)),
        terminal.colour.out,
      );
    case 'services': {
      if (isJson) {
        return formatJson(
          finding.matches.map(({ service, labels, because }) => {
            return { because, ...describeService(service, labels, view, options.clusterDomain) };
          }),
        );
      }
      const { name } = view.services.node;
      const limits = { node: name === '' ? 'a node without a name' : name, limit: options.limit };
      const shown = finding.matches.slice(0, options.limit);
      const hidden = finding.matches.length - shown.length;
      const blocks = shown.map(({ service, labels, because }) =>
        words.describeServiceInWords(describeService(service, labels, view, options.clusterDomain), because, limits),
      );
      return formatDescription(hidden > 0 ? [...blocks, [words.describeHidden(hidden)]] : blocks, terminal.colour.out);
    }
  }
}

async function describeDump(
  path: string,
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { readStoredSide } = await import('../../sides/read-side.ts');
  const { decompile } = await import('../../describe/decompile.ts');
  const { findOwners } = await import('../../changes/owners.ts');
  const { classifyServers } = await import('../../diff/server-belonging.ts');
  const stored = await readStoredSide(path);
  if (stored.kind === 'bundle' || stored.kind === 'manifests') {
    await terminal.err(
      `kpc: error: ${path} is not a dump: a dump is a folder with what iptables-save, ip6tables-save, ipset save, ipvsadm -Sn and ` +
        'ip -j addr print on a node, as kpc-apply dump writes it\n',
    );
    return exitStatus.badInput;
  }
  const { diagnostics, files } = stored.reading;
  await reportDiagnostics(makeStrict(diagnostics, options), files, terminal);
  if (stored.kind === 'unreadable' || failsStrictly(diagnostics, options)) return exitStatus.badInput;
  const owners = findOwners([stored.dump.state]);
  const { side } = stored.reading;
  if (!side) return exitStatus.badInput;
  const belongingOf = classifyServers(side, side);
  const decompiled = decompile(stored.dump.state, owners, belongingOf);
  const facts = decompiled.mode && modeFacts[decompiled.mode];
  if (facts?.namesServices === 'none') {
    await say(
      terminal,
      `kpc: note: Services are shown by address, because the state of a node in ${facts.title} holds no names\n`,
    );
  }
  const doubtful = side.state.virtualServers.filter((server) => belongingOf(server) === 'untold').length;
  if (doubtful > 0) {
    await say(
      terminal,
      `kpc: note: ${doubtful} of the virtual servers may be another program's: add the output of ipset save and ip -j addr to find out\n`,
    );
  }
  const lacking = missingFiles(decompiled.mode, side.coverage);
  if (lacking.length > 0) {
    await say(terminal, `kpc: note: the dump does not hold all of ${lacking.join(', ')}: there may be more Services\n`);
  }
  const { resolveName } = await import('../../describe/decompiled-words.ts');
  return printDecompiled(decompiled, what && resolveName(what.trim(), owners), options, terminal);
}

/** The tools that show the Services of a mode, and that a dump has not got the whole output of. */
function missingFiles(mode: Decompiled['mode'], coverage: Coverage): readonly string[] {
  const missing: { readonly [K in ObjectKind]?: readonly string[] } = {
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
  what: string | undefined,
  options: DescribeOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { describeDecompiled, isAbout } = await import('../../describe/decompiled-words.ts');
  const { decompiledRows, formatRows } = await import('../../describe/service-table.ts');
  const ports = what === undefined ? decompiled.ports : decompiled.ports.filter((port) => isAbout(port, what));
  if (ports.length === 0) {
    const about = what === undefined ? '' : ` that matches ${JSON.stringify(what)}`;
    await terminal.err(`kpc: the dump shows no Service${about}\n`);
    return exitStatus.differs;
  }
  if (options.output === 'json') await terminal.out(formatJson({ mode: decompiled.mode, ports }));
  else if (what === undefined) {
    await terminal.out(formatRows(decompiledRows(decompiled), options.limit * rowsPerLine));
  } else {
    await terminal.out(
      formatDescription(
        ports.map((port) => describeDecompiled(port, options.limit)),
        terminal.colour.out,
      ),
    );
  }
  return exitStatus.ok;
}
