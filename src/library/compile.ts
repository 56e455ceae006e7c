import { makeBundle, type BundleContent, type BundleTexts } from '../bundle/make-bundle.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { checkNodeName } from '../compile/chosen-nodes.ts';
import {
  compileLoaded,
  compileFleet as compileNodes,
  type FleetNode,
  chooseFleet,
  type Hosts,
} from '../compile/compile.ts';
import { ipFamilyChoices, type IpFamilyChoice } from '../compile/choose-families.ts';
import {
  parseHostAddresses,
  loadTexts,
  type InputOptions as PipelineOptions,
  type InputTexts,
} from '../compile/load-texts.ts';
import type { RangeFlags } from '../input/configuration/range-flags.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Release } from '../kube-proxy/releases.ts';
import { listSettings, type ProxyFlags } from '../kube-proxy/settings/table.ts';
import { TextFile } from '../input/documents/text-file.ts';
import type { Side } from '../diff/compared-side.ts';
import { diagnosticsToJson, type JsonDiagnostic } from '../report/json.ts';
import { sideOfManifests } from '../sides/stored-side.ts';
import { checkOptionNames, checkText, mapOf, type NamedText, type Texts } from './texts.ts';

/** What is compiled for one node or for many, and how: the flags of `kpc compile`, under their names in camel case. */
export interface InputOptions extends Omit<ProxyFlags, 'proxyMode'>, RangeFlags {
  readonly proxyMode?: ProxyMode | undefined;
  /** Services, EndpointSlices, Endpoints and Nodes, in YAML or JSON. */
  readonly manifests: readonly NamedText[];
  /** kube-proxy's configuration: a KubeProxyConfiguration, or the ConfigMap that holds one. */
  readonly config?: NamedText | undefined;
  /** "auto" takes the families that the Services and the node use; so does leaving it out. */
  readonly ipFamily?: IpFamilyChoice | undefined;
  /** The release of Kubernetes whose kube-proxy is meant, "1.30" or "auto": the one that the Node names. */
  readonly kubernetesVersion?: Release | 'auto' | undefined;
  /** The networks of the Pods that workloads are taken to have, or true for the known ones; nothing is assumed without it. */
  readonly assumeEndpoints?: string | true | undefined;
  /** Compile even if the result programs nothing: on a node that removes all Services. */
  readonly allowEmpty?: boolean | undefined;
}

/** Options of compile: the flags of `kpc compile` for one node. */
export interface CompileOptions extends InputOptions {
  /** The node's name; without it that of hostnameOverride, or of the only Node among the manifests. */
  readonly node?: string | undefined;
  /** What `ip -j addr` prints on the node: the addresses that node ports listen on. */
  readonly hostAddresses?: NamedText | undefined;
}

/** What kube-proxy would program on a node. */
export interface CompiledBundle {
  /** The files that `kpc compile -o` writes, by name, manifest.json first. */
  readonly files: ReadonlyMap<string, string>;
  readonly manifest: Manifest;
  /** The same to compare with, and as data. */
  readonly side: Side;
}

/** A node's bundle, or why there is none. */
export interface CompileResult {
  /** Undefined if a diagnostic is an error. */
  readonly bundle: CompiledBundle | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

/** The options of both functions: a program without types would not learn that another is ignored. */
const inputOptions: readonly string[] = [
  ...(['manifests', 'config', 'ipFamily', 'kubernetesVersion', 'assumeEndpoints', 'allowEmpty'] as const),
  ...(['serviceClusterIpRange', 'serviceNodePortRange', 'loadBalancerIpRange'] as const),
  ...listSettings().flatMap(({ row }) => row.flags.map(({ key }) => key)),
];

/**
 * Compiles Services and EndpointSlices to what kube-proxy would program on one node. Never throws for bad input, but a
 * TypeError for options that have another name or type.
 */
export function compile(options: CompileOptions): CompileResult {
  checkOptionNames(options, [...inputOptions, 'node', 'hostAddresses']);
  const { node } = options;
  const wrong = node === undefined ? undefined : checkNodeName(node);
  const request = pipelineOptions(options);
  const loaded = loadTexts(textsOf(options, options.hostAddresses), request);
  const { content, gaps, diagnostics } = compileLoaded(loaded, { ...request, node }, wrong ? [wrong] : []);
  return {
    bundle: content && bundleOf(content),
    diagnostics: diagnosticsToJson([...gaps, ...diagnostics]),
  };
}

/** Options of compileFleet: the flags of `kpc compile` for many nodes. */
export interface FleetOptions extends InputOptions {
  /** The nodes' names; without them, all Nodes among the manifests. */
  readonly nodes?: readonly string[] | undefined;
  /** Only part I of N of the nodes, as "I/N"; I counts from 0. */
  readonly shard?: string | undefined;
  /** Name of a node → what `ip -j addr` prints there. */
  readonly hostAddresses?: Texts | undefined;
}

/** One node's bundle. */
export interface NodeBundle extends CompiledBundle {
  readonly node: string;
}

/** The bundles of many nodes, or why there are none. */
export interface FleetResult {
  /** Sorted by node. Each is compiled when it is asked for; undefined if a diagnostic is an error. */
  readonly bundles: Iterable<NodeBundle> | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

/** As compile, for many nodes, in much less time than one after the other. */
export function compileFleet(options: FleetOptions): FleetResult {
  checkOptionNames(options, [...inputOptions, 'nodes', 'shard', 'hostAddresses']);
  const { nodes, shard } = options;
  const request = pipelineOptions(options);
  const loaded = loadTexts(textsOf(options, undefined), request);
  const asked = { ...(nodes ? { node: nodes } : { allNodes: true }), ...(shard === undefined ? {} : { shard }) };
  const hosts = mapOf(options.hostAddresses ?? {}, 'hostAddresses');
  const fleet = chooseFleet(asked, loaded.prepared, (names) => hostsOf(names, hosts));
  const { nodes: compiled, diagnostics } = compileNodes(loaded, fleet, request.ipFamily);
  return { bundles: compiled && nodeBundles(compiled), diagnostics: diagnosticsToJson(diagnostics) };
}

function* nodeBundles(nodes: Iterable<FleetNode>): Generator<NodeBundle, void, undefined> {
  for (const { node, texts, compile: compileOne } of nodes) yield { node, ...bundleOf(compileOne(), texts) };
}

function bundleOf(content: BundleContent, texts?: BundleTexts): CompiledBundle {
  return { ...makeBundle(content, texts), side: sideOfManifests(content.node.name || 'manifests', content) };
}

function hostsOf(nodes: readonly string[], texts: ReadonlyMap<string, string>): Hosts {
  const read = nodes.flatMap((node) => {
    const text = texts.get(node);
    return text === undefined ? [] : [{ node, ...parseHostAddresses({ name: node, text }) }];
  });
  return {
    addresses: new Map(read.map(({ node, addresses }) => [node, addresses])),
    diagnostics: read.flatMap(({ diagnostics }) => diagnostics),
  };
}

function textsOf({ manifests, config }: InputOptions, hostAddresses: NamedText | undefined): InputTexts {
  if (!Array.isArray(manifests)) throw new TypeError('manifests is not an array of { name, text }');
  return {
    manifests: { files: manifests.map((file: NamedText) => fileOf(file, 'one of manifests')), diagnostics: [] },
    config: config && fileOf(config, 'config'),
    hostAddresses: hostAddresses && checkText(hostAddresses, 'hostAddresses'),
  };
}

function fileOf(value: NamedText, what: string): TextFile {
  const { name, text } = checkText(value, what);
  return new TextFile(name, text.replace(/^\uFEFF/, ''));
}

function pipelineOptions({
  ipFamily = 'auto',
  allowEmpty = false,
  ...options
}: InputOptions & { readonly node?: string | undefined }): PipelineOptions {
  if (!ipFamilyChoices.includes(ipFamily)) {
    throw new TypeError(`ipFamily is not one of ${ipFamilyChoices.join(', ')}`);
  }
  return { ...options, ipFamily, emptyResult: allowEmpty ? 'allowed' : 'of-a-cluster' };
}
