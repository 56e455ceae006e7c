import { makeBundle, type BundleTexts } from '../bundle/make-bundle.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { checkNodeName } from '../snapshot/open/chosen-nodes.ts';
import {
  compileLoaded,
  compileFleetNodes as compileNodes,
  type FleetNode,
  chooseFleet,
} from '../snapshot/open/compile.ts';
import { parseHostAddresses, loadTexts, type Hosts } from '../snapshot/open/load-texts.ts';
import type { CompiledSnapshot } from '../snapshot/snapshot.ts';
import type { SaidFinding } from '../say/words/said.ts';
import {
  pipelineOptions,
  readInputTexts,
  checkOptionNames,
  mapTexts,
  type InputOptions,
  type NamedText,
  type Texts,
} from './inputs.ts';
import { openOptions } from './options.ts';
import { diagnosticsOf } from './words.ts';

/** The flags of `kpc compile` for one node. */
export interface CompileOptions extends InputOptions {
  /** The default is hostnameOverride, or the only Node among the manifests. */
  readonly node?: string | undefined;
  /** The output of `ip -j addr` on the node. It shows the addresses that node ports listen on. */
  readonly hostAddresses?: NamedText | undefined;
  /** The name of the compiled side. The default is the name of its node. */
  readonly name?: string | undefined;
}

export interface CompiledBundle {
  /** The files that `kpc compile -o` would write, keyed by name. manifest.json is the first. */
  readonly files: ReadonlyMap<string, string>;
  readonly manifest: Manifest;
  /** The compiled node. It can be compared and described, and packets can be traced on it. */
  readonly side: CompiledSnapshot;
}

export interface CompileResult {
  /** Undefined if a diagnostic is an error. */
  readonly bundle: CompiledBundle | undefined;
  readonly diagnostics: readonly SaidFinding[];
}

export const written: readonly string[] = [...openOptions, 'manifests', 'allowEmpty'];

/**
 * Compiles Services and EndpointSlices to what kube-proxy would program on one node. Bad input gives diagnostics. Throws a TypeError for
 * an option with an unknown name or a wrong type.
 *
 * ```ts
 * import { compile } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * const { bundle } = compile({ manifests, proxyMode: 'nftables', assume: true });
 * console.log(bundle?.manifest.mode, bundle?.files.has('nftables.nft')); // nftables true
 * ```
 */
export function compile(options: CompileOptions): CompileResult {
  checkOptionNames(options, [...written, 'node', 'name']);
  const { node, name, ...input } = options;
  const wrong = node === undefined ? undefined : checkNodeName(node);
  const request = pipelineOptions(input);
  const loaded = loadTexts(readInputTexts(input, input.hostAddresses), request);
  return compileResult(compileLoaded(loaded, { ...request, node, name }, wrong ? [wrong] : []));
}

export function compileResult({ snapshot, gaps, diagnostics }: ReturnType<typeof compileLoaded>): CompileResult {
  return {
    bundle: snapshot && bundleOf(snapshot),
    diagnostics: diagnosticsOf([...gaps(), ...diagnostics]),
  };
}

export interface FleetOptions extends InputOptions {
  /** The default is all Nodes among the manifests. */
  readonly nodes?: readonly string[] | undefined;
  /** "I/N" compiles only part I of the nodes, if these are split into N parts. I counts from 0. */
  readonly shard?: string | undefined;
  /** Maps a node's name to the output of `ip -j addr` on the node. */
  readonly hostAddresses?: Texts | undefined;
}

export interface NodeBundle extends CompiledBundle {
  readonly node: string;
}

export interface FleetResult {
  /** The bundles, sorted by node. Each is compiled when it is requested. Undefined if a diagnostic is an error. */
  readonly bundles: Iterable<NodeBundle> | undefined;
  readonly diagnostics: readonly SaidFinding[];
}

/** Does what `compile` does, but for many nodes and much faster than one call for each node. */
export function compileFleet(options: FleetOptions): FleetResult {
  checkOptionNames(options, [...written, 'nodes', 'shard']);
  const { nodes, shard } = options;
  const request = pipelineOptions(options);
  const loaded = loadTexts(readInputTexts(options, undefined), request);
  const asked = { ...(nodes ? { node: nodes } : { allNodes: true }), ...(shard === undefined ? {} : { shard }) };
  const hosts = mapTexts(options.hostAddresses ?? {}, 'hostAddresses');
  const fleet = chooseFleet(asked, loaded, (names) => readHosts(names, hosts));
  const { nodes: compiled, diagnostics } = compileNodes(loaded, fleet, request.ipFamily);
  return { bundles: compiled && nodeBundles(compiled), diagnostics: diagnosticsOf(diagnostics) };
}

function* nodeBundles(nodes: Iterable<FleetNode>): Generator<NodeBundle, void, undefined> {
  for (const { node, texts, snapshot } of nodes) yield { node, ...bundleOf(snapshot, texts) };
}

export function bundleOf(side: CompiledSnapshot, texts?: BundleTexts): CompiledBundle {
  return { ...makeBundle(side, texts), side };
}

function readHosts(nodes: readonly string[], texts: ReadonlyMap<string, string>): Hosts {
  const read = nodes.flatMap((node) => {
    const text = texts.get(node);
    return text === undefined ? [] : [{ node, ...parseHostAddresses({ name: node, text }) }];
  });
  return {
    addresses: new Map(read.map(({ node, addresses }) => [node, addresses])),
    diagnostics: read.flatMap(({ diagnostics }) => diagnostics),
  };
}
