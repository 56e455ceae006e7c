import type { BundleFault } from '../../base/findings/bundle.ts';
import type { TextFile } from '../../input/documents/text-file.ts';
import { networkFile } from '../../base/names.ts';
import { version } from '../../base/version.ts';
import { nodeOfBundle, type Manifest } from '../../bundle/manifest.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { readBundle, type StoredBundle } from '../../bundle/read-bundle.ts';
import { readGolden } from '../../bundle/golden.ts';
import { cite, diagnose, isError, type Finding, keyOfFault } from '../../base/findings/finding.ts';
import { compileState, NodeMemo } from './compile-node.ts';
import type { Dump } from '../../dumps/dump.ts';
import { readDump } from '../../dumps/read-dump.ts';
import { DumpedSnapshot, type CompiledSnapshot, type Snapshot } from '../snapshot.ts';
import { coverAll } from '../../dumps/coverage.ts';
import { families as bothFamilies } from '../../kernel/address.ts';
import { tableNames, type Tables } from '../../kernel/iptables/iptables.ts';
import { findTable } from '../../kernel/nftables/table.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { programs, type ModeSource } from '../../kube-proxy/modes.ts';
import { checkHosts, parseHostLinks, type HostText, type LoadedInputs } from './load-texts.ts';
import { compileLoaded, type Compilation, type NodeOptions } from './compile.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { groundsOf } from '../grounds.ts';
import type { ReadAs, ReleaseShownBy } from '../../base/findings/files.ts';
import { groupBy } from '../../cluster/grouping.ts';

export interface Reading {
  readonly side: Snapshot | undefined;
  readonly diagnostics: readonly Finding[];
  readonly files: LoadedInputs['files'];
  /** Undefined if the side could not be read. */
  readonly readAs: ReadAs | undefined;
  /** Finds facts about the node that the manifests lack. This compiles the node's state. */
  readonly gaps?: Compilation['gaps'];
}

export type Recognised = Reading & {
  readonly beside: readonly string[];
} & (
    | { readonly kind: 'bundle'; readonly side: CompiledSnapshot; readonly manifest: Manifest }
    | {
        readonly kind: 'dump';
        readonly side: DumpedSnapshot;
        readonly manifests: readonly TextFile[];
        /** Returns kpc-apply's dump completed with other tools' output from the same node. */
        readonly withMore?: (texts: ReadonlyMap<string, string>, diagnostics: readonly Finding[]) => Recognised;
      }
    | { readonly kind: 'manifests' | 'unreadable'; readonly side: undefined }
  );

export interface Opened {
  /** Undefined if the side is a bundle or a dump. */
  readonly loaded: LoadedInputs | undefined;
  /** '' stands for the node that the options name, or else for the default node. */
  readonly nodes: readonly string[];
  readonly isNodeNamed?: boolean;
  readonly at: (node: string) => Reading;
}

export function openReading(reading: Reading): Opened {
  return { loaded: undefined, nodes: [''], at: () => reading };
}

type OpenedNodes = NodeOptions & { readonly allNodes?: boolean | undefined };

export function openManifests(name: string, loaded: LoadedInputs, options: OpenedNodes): Opened {
  return openNodes(loaded, options, (node, memo) => {
    const compilation = compileLoaded(loaded, { ...options, node, name }, [], memo);
    return readingOf(loaded, compilation);
  });
}

/** Reports whether the inputs share several Nodes and nothing names one. A comparison then covers all Nodes that both sides have. */
export function namesNoNode(node: string | undefined, ...inputs: readonly Pick<LoadedInputs, 'nodes' | 'settings'>[]) {
  const shared = inputs.flatMap(({ nodes }) =>
    [...nodes.keys()].filter((name) => inputs.every((each) => each.nodes.has(name))),
  );
  const isNamed = node !== undefined || inputs.some(({ settings }) => settings.hostnameOverride !== '');
  return !isNamed && shared.length > 0 && inputs.some(({ nodes }) => nodes.size > 1);
}

/** Opens nodes. If several nodes have the same diagnostic, reports it only for the first of them. */
export function openNodes(
  loaded: LoadedInputs,
  { allNodes = false, ...options }: OpenedNodes,
  read: (node: string | undefined, memo: NodeMemo | undefined) => Reading,
): Opened {
  const nodes = allNodes ? [...loaded.nodes.keys()].toSorted() : [''];
  const memo = nodes.length > 1 ? new NodeMemo() : undefined;
  const wrong = checkHosts(loaded, nodes);
  /** Maps each diagnostic to the node that reported it first. If that node is read again, the diagnostic is repeated. */
  const first = new Map<string, string>();
  const at = (node: string): Reading => {
    const reading = wrong.length > 0 ? failedReading(loaded, wrong) : read(node === '' ? options.node : node, memo);
    const diagnostics = reading.diagnostics.filter((each) => {
      const key = keyOfFault(each);
      return !first.has(key) || first.get(key) === node;
    });
    for (const key of diagnostics.map(keyOfFault)) first.set(key, node);
    return { ...reading, diagnostics };
  };
  const isNodeNamed = options.node !== undefined || loaded.settings.hostnameOverride !== '';
  return { loaded, nodes, isNodeNamed, at };
}

export function failedReading({ files }: Pick<Reading, 'files'>, diagnostics: Reading['diagnostics']): Reading {
  return { side: undefined, diagnostics, files, readAs: undefined };
}

export function readingOf(
  loaded: LoadedInputs,
  { snapshot, diagnostics, gaps }: Compilation,
  modeFrom?: ModeSource,
  shownBy?: ReleaseShownBy,
): Reading {
  const failed = failedReading(loaded, diagnostics);
  if (!snapshot) return failed;
  return { ...failed, side: snapshot, gaps, readAs: { as: 'manifests', ...compiledAs(snapshot, modeFrom, shownBy) } };
}

function compiledAs(side: CompiledSnapshot, modeFrom?: ModeSource, shownBy?: ReleaseShownBy) {
  const { release } = side.settings;
  const isUsual = release === newestRelease && !shownBy;
  return { grounds: groundsOf(side, modeFrom), release: isUsual ? undefined : { release, shownBy } };
}

const nothingSaid = { diagnostics: [], files: new Map(), readAs: undefined, beside: [] } as const;

export const manifests: Recognised = { ...nothingSaid, kind: 'manifests', side: undefined };

export function unreadable(diagnostics: readonly Finding[]): Recognised {
  return { ...nothingSaid, kind: 'unreadable', side: undefined, diagnostics };
}

/** `known`: the nodes whose bundles the fleet has. */
export function unknownInFleet(node: string, known: readonly string[]): Finding {
  return diagnose('unknown-node', { flag: '--node', names: [node], known, isOfFleet: true });
}

/** Refuses manifests beside a bundle. A bundle already names its own Services. */
export function alone(read: Recognised, [beside]: readonly { readonly name: string }[]): Recognised {
  if (read.kind !== 'bundle' || beside === undefined) return read;
  return unreadable([diagnose('no-manifests', { what: 'bundle', path: read.side.name, beside: beside.name })]);
}

export function sideOfBundle(path: string, files: BundleFiles): Recognised {
  const result = readBundle(files, compileState, path);
  if (result.kind === 'broken') return brokenSide(path, result.problems);
  if (result.bundle.manifest.dumped) return readDumpedBundle(path, result.bundle, files.get(networkFile) ?? '');
  return sideOfStored('bundle', result.bundle);
}

export function sideOfGolden(path: string, files: BundleFiles): Recognised {
  const result = readGolden(files, compileState, version, path);
  if (result.kind === 'bundle') return sideOfStored('golden', result.bundle);
  return brokenSide(path, result.problems);
}

function brokenSide(path: string, problems: readonly BundleFault[]): Recognised {
  return unreadable(problems.map((problem) => diagnose('bad-bundle', { path, problem })));
}

function sideOfStored(as: 'bundle' | 'golden', { manifest, snapshot: side }: StoredBundle): Recognised {
  return { ...nothingSaid, kind: 'bundle', side, manifest, readAs: { as, ...compiledAs(side) } };
}

/** Reads kpc-apply's dump: a bundle that was not compiled and lists no modules. `network`: other chains, links, routes and sysctls. */
function readDumpedBundle(
  path: string,
  bundle: StoredBundle,
  network: string,
  more: ReadonlyMap<string, string> = new Map(),
  diagnostics: readonly Finding[] = [],
): Recognised {
  const { manifest, snapshot } = bundle;
  const own = snapshot.state;
  const {
    state: shown,
    coverage: ofNetwork,
    routes,
    doubts,
    flows,
  } = readDump(new Map([[networkFile, network], ...more]));
  const links = [...own.links, ...shown.links.filter(({ name }) => name !== serviceLink)];
  const iptables = Object.fromEntries(
    bothFamilies.flatMap((family) => {
      const tables = joinTables(own.iptables[family], shown.iptables[family]);
      return tables ? [[family, tables]] : [];
    }),
  );
  // Packets also pass through the other tables that the tools list.
  const others = shown.nftables.filter(
    ({ family, name, chains }) => chains.size > 0 && !findTable(own.nftables, family, name),
  );
  const nftables = [...own.nftables, ...others];
  const sets = [...own.sets, ...shown.sets.filter(({ name }) => !own.sets.some((each) => each.name === name))];
  const state = { ...own, iptables, nftables, sets, links, sysctls: new Map([...shown.sysctls, ...own.sysctls]) };
  // If the dump's files have no rules for a family, the node has none either.
  const { hostAddresses } = nodeOfBundle(manifest);
  // The dump's own files hold only kube-proxy's tables. If the node has no other tables, nft prints nothing.
  const lacksTables = programs(manifest.mode, 'nftables') && !/^\$ nft list ruleset$/m.test(network);
  const coverage = { ...coverAll(), modules: false, lacksTables, listed: ofNetwork.listed };
  const side = new DumpedSnapshot({ name: path, state: () => state, coverage, doubts, routes, flows, hostAddresses });
  const withMore = (...added: [ReadonlyMap<string, string>, readonly Finding[]]): Recognised =>
    readDumpedBundle(path, bundle, network, ...added);
  const { node, mode, families } = manifest;
  const readAs: ReadAs = { as: 'stored-dump', node: node.name, mode, families, more: [...more.keys()] };
  return { ...nothingSaid, kind: 'dump', side, manifests: [], diagnostics, readAs, withMore };
}

function joinTables(own: Tables | undefined, others: Tables | undefined): Tables | undefined {
  if (!own || !others) return own ?? others;
  return Object.fromEntries(
    tableNames.flatMap((name) => {
      const chains = new Map([...(own[name] ?? []), ...(others[name] ?? [])]);
      return chains.size === 0 ? [] : [[name, chains]];
    }),
  );
}

/** `diagnostics` are about the files. `texts`: the manifests in a support bundle. */
export function sideOfDump(
  name: string,
  dump: Dump,
  diagnostics: readonly Finding[],
  texts: readonly TextFile[] = [],
): Recognised {
  if (isRefusedOnly(dump)) {
    return unreadable(
      diagnostics.map((each) =>
        each.code === 'unread-output' ? diagnose(each.code, { ...each.arguments, isAll: true }, each.place) : each,
      ),
    );
  }
  const files = [...groupBy(dump.files, (file) => file.name)].map(([file, own]) => ({
    name: file,
    outputs: own.map(({ kind }) => kind),
  }));
  const links = dump.state.links.filter((link) => link.name !== serviceLink);
  // If the output is from `ip addr show kube-ipvs0`, that link is the only one.
  const hostAddresses =
    dump.coverage.links && links.length > 0
      ? links.flatMap(({ addresses }) => addresses.map(({ address }) => address))
      : undefined;
  const { state, coverage, doubts, flows, routes, log } = dump;
  const side = new DumpedSnapshot({ name, state: () => state, coverage, doubts, flows, routes, log, hostAddresses });
  return { ...nothingSaid, kind: 'dump', side, manifests: texts, diagnostics, readAs: { as: 'dump', files } };
}

/** Returns a dump with the node's addresses from another listing. If a diagnostic reports a fault in the listing, there is no side. */
export function withHostAddresses<Read extends Reading & { readonly side: DumpedSnapshot }>(
  read: Read,
  listing: HostText | Finding | undefined,
): Read | (Omit<Read, 'side'> & { readonly side: undefined }) {
  if (listing === undefined) return read;
  const { links, diagnostics } = parseHostLinks(listing);
  if (diagnostics.length > 0) return { ...read, side: undefined, diagnostics: [...read.diagnostics, ...diagnostics] };
  const { state, coverage } = read.side;
  const covered = { ...coverage, links: true, allAddresses: undefined };
  const doubts = read.side.doubts.filter((doubt) => doubt.kind !== 'unlisted' || doubt.lacks !== 'address');
  return { ...read, side: read.side.with({ state: () => ({ ...state, links }), coverage: covered, doubts }) };
}

/** Returns the Services from manifests, which name a dump's objects, and all other objects. `cluster` is undefined after an error. */
export function namesInManifests({ diagnostics: all, files, inputs: objects, settings, cluster: found }: LoadedInputs) {
  const diagnostics = all.filter(isError);
  const cluster = diagnostics.length > 0 ? undefined : found;
  return { cluster, release: settings.release, objects, diagnostics, files };
}

/** Adds names and objects from manifests beside a dump. If `areChosen` is false, errors in the manifests are tolerated. */
export function withNames(
  read: Reading & { readonly side: DumpedSnapshot },
  loaded: LoadedInputs,
  areChosen: boolean,
): Reading {
  const { cluster, release, objects, diagnostics, files } = namesInManifests(loaded);
  const [wrong] = diagnostics;
  if (wrong && !areChosen) {
    const note = diagnose('reading', { problem: 'manifests-left-out', error: cite(wrong) });
    return { ...read, diagnostics: [...read.diagnostics, note] };
  }
  const shown = read.side.with({ objects });
  const side = cluster ? shown.namedBy(cluster, release) : shown;
  return { ...read, side, diagnostics: [...read.diagnostics, ...diagnostics], files };
}

export function isRefusedOnly({ files, faults }: Dump): boolean {
  return files.length === 0 && faults.some(({ code }) => code === 'unread-output');
}
