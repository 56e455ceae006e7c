import { findOwners } from '../../src/diff/changes/owners.ts';
import { compileLoaded } from '../../src/compile/compile.ts';
import { compileState } from '../../src/compile/compile-node.ts';
import { loadTexts } from '../../src/compile/load-texts.ts';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { findShown } from '../../src/describe/decompile.ts';
import { describeService, type View } from '../../src/describe/describe-services.ts';
import { describeServiceInWords } from '../../src/describe/describe-words.ts';
import { diagnose, type Diagnostic } from '../../src/diagnostics/diagnostic.ts';
import { holdsOutput } from '../../src/dumps/read-dump.ts';
import { diffSides } from '../../src/diff/diff-sides.ts';
import { compareScenes } from '../../src/packet/equivalence/compare.ts';
import { effectsByService, Findings } from '../../src/packet/equivalence/findings.ts';
import { preparationsFor } from '../../src/packet/equivalence/preparations.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { joinHostPort } from '../../src/kernel/address.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import type { PacketProtocol } from '../../src/packet/packet.ts';
import { mainFile, printNames, summarizeSide } from '../../src/report/bundle-text.ts';
import { formatDescription, painter } from '../../src/report/colours.ts';
import { reportReview } from '../../src/report/diff-review.ts';
import { formatEquivalence } from '../../src/report/equivalence.ts';
import { diagnosticsToJson, type JsonDiagnostic } from '../../src/report/json.ts';
import { formatText } from '../../src/report/text-and-markdown.ts';
import { formatMatrix } from '../../src/report/trace-matrix.ts';
import { drawTraces } from '../../src/report/trace-svg.ts';
import { sideOfManifests } from '../../src/sides/stored-side.ts';
import { assumedIn, listTraceLines, describeTrace, type TraceInWords } from '../../src/packet/trace/trace-words.ts';
import { followIngress } from '../../src/packet/trace/ingress.ts';
import { traceMatrix } from '../../src/packet/trace/matrix.ts';
import { ask, findPorts, senderKinds } from '../../src/packet/trace/question.ts';
import { groupBy } from '../../src/cluster/group-by.ts';
import type { ShownPort } from '../../src/describe/shown-port.ts';
import { onOneNode, sceneOf, serviceOf, type Scene } from '../../src/packet/trace/scene.ts';

export { newestRelease, releases, type Release } from '../../src/kube-proxy/releases.ts';
export type { JsonDiagnostic } from '../../src/report/json.ts';

/** What is compiled, and how. */
export interface Input {
  readonly name: string;
  readonly text: string;
  /** '' for the first Node of the input. */
  readonly node: string;
  readonly mode: ProxyMode;
  readonly release: Release;
  /** Whether to assume what manifests from git lack, as kpc describe does. */
  readonly assume: boolean;
}

/** What the page asks. */
export type Question =
  | { readonly kind: 'compile'; readonly input: Input }
  | { readonly kind: 'service'; readonly input: Input; readonly service: string }
  | { readonly kind: 'trace'; readonly input: Input; readonly packet: PacketQuestion }
  | { readonly kind: 'compare'; readonly from: Input; readonly to: Input };

export interface PacketQuestion {
  readonly from: string;
  readonly to: string;
  /** '' for the protocol of the Service port. */
  readonly protocol: PacketProtocol | '';
}

/** What came out. Texts have the colours of a terminal. */
export type Answer =
  | { readonly kind: 'compiled'; readonly result: Compiled }
  | { readonly kind: 'service'; readonly text: string; readonly matrix: string; readonly ways: readonly Way[] }
  | { readonly kind: 'trace'; readonly text: string; readonly svg: string }
  | { readonly kind: 'compare'; readonly text: string; readonly diagnostics: readonly JsonDiagnostic[] }
  /** Why there is no answer, in a sentence. */
  | { readonly kind: 'wrong'; readonly text: string };

export interface Compiled {
  readonly diagnostics: readonly JsonDiagnostic[];
  /** The names of all nodes, also if there are errors. */
  readonly nodes: readonly string[];
  /** Undefined if a diagnostic is an error. */
  readonly output: Output | undefined;
}

interface Output {
  readonly node: string;
  readonly summary: string;
  /** The files of a bundle, by name. */
  readonly files: readonly (readonly [name: string, text: string])[];
  /** The file that shows most of the Services. */
  readonly mainFile: string;
  readonly services: readonly string[];
  /** What packets may be asked about. */
  readonly senders: readonly string[];
  readonly targets: readonly string[];
}

/** The way of the packets of one kind of sender to one address of a Service. */
export interface Way {
  readonly from: string;
  readonly to: string;
  readonly verdict: string;
  readonly isGood: boolean;
  /** The chains, sets and virtual servers on the way, in order. */
  readonly stations: readonly Station[];
  readonly endpoints: readonly WayEndpoint[];
}

export interface Station {
  readonly name: string;
  readonly detail: string;
}

export interface WayEndpoint {
  readonly name: string;
  /** Share of new connections, from 0 to 1. */
  readonly share: number;
  readonly note: string;
}

/** So many lines of a list are shown, and so many ways are drawn. */
const limit = 200;
const mostWays = 24;
/** So many Service ports are asked about at most, in a comparison of two versions: each may be reached in many ways. */
const mostAsked = 400;

interface Loaded {
  readonly nodes: readonly string[];
  readonly diagnostics: readonly JsonDiagnostic[];
  readonly content: ReturnType<typeof compileLoaded>['content'];
  readonly objects: ReturnType<typeof loadTexts>['inputs'];
}

/** Reads and compiles an input. */
type Load = (input: Input) => Loaded;

/**
 * A function that answers questions. Wrong input is part of the answer; it throws only for a bug. It keeps the last two
 * inputs compiled, since questions are mostly about the same ones.
 */
export function startCompiler(): (question: Question) => Answer {
  const kept = new Map<string, Loaded>();
  const loadOnce: Load = (input) => {
    const key = JSON.stringify(input);
    const found = kept.get(key) ?? load(input);
    kept.delete(key);
    kept.set(key, found);
    for (const old of [...kept.keys()].slice(0, -2)) kept.delete(old);
    return found;
  };
  return (question) => answer(question, loadOnce);
}

function answer(question: Question, loadOnce: Load): Answer {
  switch (question.kind) {
    case 'compile':
      return { kind: 'compiled', result: compile(question.input, loadOnce) };
    case 'service':
      return withScene(question.input, loadOnce, (loaded, scene) => answerService(question.service, loaded, scene));
    case 'trace':
      return withScene(question.input, loadOnce, (_, scene) => answerPacket(question.packet, scene));
    case 'compare':
      return compare(question.from, question.to, loadOnce);
  }
}

function load({ name, text, node, mode, release, assume }: Input): Loaded {
  const options = { proxyMode: mode, kubernetesVersion: release, assume, traffic: true, ipFamily: 'auto' } as const;
  const manifests = { files: [new TextFile(name, text.replace(/^\uFEFF/, ''))], diagnostics: [] };
  const read = loadTexts({ manifests, config: undefined, hostAddresses: undefined }, options);
  const { prepared } = read;
  const nodes = [...new Set([...prepared.nodes.keys(), ...prepared.assumedNodes])].toSorted();
  const chosen = nodes.includes(node) ? node : nodes[0];
  const { content, gaps, diagnostics } = compileLoaded(read, { node: chosen, ipFamily: 'auto' });
  // Objects may quote what a node printed.
  const isDump = content === undefined && !/\bkind\b/.test(text) && holdsOutput(text);
  const found = isDump ? [diagnose('no-manifests', { what: 'dump', path: name })] : [...gaps, ...diagnostics];
  return { nodes, diagnostics: diagnosticsToJson(found), content, objects: read.inputs };
}

function compile(input: Input, loadOnce: Load): Compiled {
  const { nodes, diagnostics, content, objects } = loadOnce(input);
  if (!content) return { diagnostics, nodes, output: undefined };
  const scene = sceneFrom(input.name, content, objects);
  const { files, manifest } = makeBundle(content);
  const side = sideOfManifests(input.name, content);
  const services = content.cluster.services.map((each) => `${each.namespace}/${each.name}`);
  return {
    diagnostics,
    nodes,
    output: {
      node: content.node.name,
      summary: summarizeSide(side),
      files: [...files],
      mainFile: printNames.get(mainFile(manifest)) ?? 'manifest.json',
      services,
      senders: [...senderKinds, ...scene.pods.keys()].slice(0, limit),
      targets: [...new Set(scene.ports.flatMap(targetsOf))].slice(0, limit),
    },
  };
}

function targetsOf(port: ShownPort): readonly string[] {
  const number = port.port;
  const addresses = number === undefined ? [] : port.addresses.map(({ address }) => joinHostPort(address, number));
  return [`svc/${serviceOf(port.name)}${number === undefined ? '' : `:${number}`}`, ...addresses];
}

function sceneFrom(name: string, content: NonNullable<Loaded['content']>, objects: Loaded['objects']): Scene {
  const side = sideOfManifests(name, content);
  return sceneOf(side, findOwners([side.state]), content.settings.mode, [], objects);
}

function withScene(input: Input, loadOnce: Load, use: (loaded: Loaded, scene: Scene) => Answer): Answer {
  const loaded = loadOnce(input);
  if (!loaded.content) return wrong('the manifests have errors');
  return use(loaded, sceneFrom(input.name, loaded.content, loaded.objects));
}

function wrong(text: string): Answer {
  return { kind: 'wrong', text };
}

function answerService(name: string, { objects }: Loaded, scene: Scene): Answer {
  const { side, owners } = scene;
  const { state, families, services } = side;
  const service = services?.cluster.services.find((each) => `${each.namespace}/${each.name}` === name);
  if (!services || !service) return wrong(`no Service ${name}`);
  const view: View = {
    state,
    families,
    owners,
    services,
    objects,
    shownOf: findShown(state, owners),
    compile: (cluster) => compileState(cluster, services.node, services.settings, families),
  };
  const node = services.node.name === '' ? 'a node without a name' : services.node.name;
  const description = describeService(service, undefined, view, 'cluster.local');
  const lines = describeServiceInWords(description, [], { node, limit });
  const text = formatDescription([lines], true);
  const ports = findPorts(name, undefined, scene);
  if (ports.kind === 'wrong') return { kind: 'service', text, matrix: '', ways: [] };
  const matrix = traceMatrix(ports.value, scene);
  return {
    kind: 'service',
    text,
    matrix: formatMatrix(matrix, services.node.name, { isColoured: true }),
    ways: waysOf(matrix, scene),
  };
}

/** One way for each address: from a pod to a cluster IP, and from outside to the others. */
function waysOf({ cells }: ReturnType<typeof traceMatrix>, scene: Scene): readonly Way[] {
  const rows = groupBy(
    cells,
    ({ target: { address, port, protocol } }) => `${joinHostPort(address.text, port)}/${protocol}`,
  );
  return [...rows].slice(0, mostWays).flatMap(([to, row]) => {
    const [{ kind }] = row;
    const asked = kind === 'cluster IP' ? ['pod', 'remote-pod', 'node'] : ['external', 'node'];
    const found = asked.map((sender) => row.find(({ from }) => from === sender)).find((cell) => cell !== undefined);
    // Nothing of a Service is on such a way.
    if (!found || found.fate.verdict === 'local') return [];
    const { sender, fate } = found;
    const words = describeTrace(found, scene);
    const endpoints = fate.endpoints.map((endpoint) => ({
      name: joinHostPort(endpoint.address.text, endpoint.port),
      share: endpoint.probability,
      note: endpoint.source === 'masqueraded' ? 'sees the node' : 'sees the client',
    }));
    return [
      {
        from: sender.words,
        to: `${kind} ${to}`,
        verdict: words.verdict,
        isGood: words.isGood,
        stations: stationsOf(words, endpoints),
        endpoints,
      },
    ];
  });
}

/** The chains and so on that the steps are in, each once in a row, without those that change nothing. */
function stationsOf({ steps }: TraceInWords, endpoints: Way['endpoints']): readonly Station[] {
  const [first, ...others] = endpoints;
  const stations: (Station & { readonly next: string | undefined })[] = [];
  for (const { hook, where, what } of steps) {
    if (hook === undefined || what === 'leaves this chain') continue;
    const name = where.replace(/ rule \d+$/, '').replace(/^(?:iptables|nftables kube-proxy|nftables) /, '');
    // What a chain does last says more than its first rule.
    if (stations.at(-1)?.name === name) stations.pop();
    const [, next, rest = ''] = /^goes on to (\S+)(.*)$/.exec(what) ?? [];
    const choice = others.length > 0 ? /, (one of \d+ .*)$/.exec(what)?.[1] : undefined;
    const isOfOne = first !== undefined && others.length > 0 && what === `goes to ${first.name}`;
    const detail = isOfOne
      ? `${what}; each endpoint has its own`
      : next === undefined
        ? (choice ?? what)
        : rest.replace(/^,? /, '');
    stations.push({ name, detail: detail === '' ? hook : `${hook}: ${detail}`, next });
  }
  return stations.filter(({ next }, i) => next === undefined || stations[i + 1]?.name.endsWith(next) === true);
}

function answerPacket({ from, to, protocol }: PacketQuestion, scene: Scene): Answer {
  const asked = {
    from: from.trim(),
    to: to.trim(),
    protocol: protocol === '' ? undefined : protocol,
    inInterface: undefined,
    namespace: undefined,
  };
  if (asked.from === '' || asked.to === '') return wrong('name who sends the packet, and where to');
  const over = followIngress(asked, scene);
  if (over?.kind === 'wrong') return wrong(sentences([over.diagnostic]));
  const trace = over ? undefined : ask(asked, scene);
  if (trace?.kind === 'wrong') return wrong(sentences(trace.faults.map(({ diagnostic }) => diagnostic)));
  const traces = over ? over.value.traces : trace ? [trace.value] : [];
  const words = traces.map((each) => describeTrace(each, scene));
  const blocks = [...(over ? [over.value.lines] : []), ...words.map(listTraceLines)].map((lines) => {
    const [first, ...others] = lines;
    const texts = lines.map(({ text }) => text);
    return first ? [first, ...assumedIn(texts, scene.side), ...others] : lines;
  });
  return { kind: 'trace', text: formatDescription(blocks, true), svg: drawTraces(words) };
}

function sentences(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map(({ text, help }) => (help === undefined ? text : `${text}\n${help}`)).join('\n');
}

function compare(from: Input, to: Input, loadOnce: Load): Answer {
  const [old, fresh] = [loadOnce(from), loadOnce(to)];
  const diagnostics = old.diagnostics.length === 0 || from.text !== to.text ? fresh.diagnostics : [];
  if (!old.content) return wrong('the manifests have errors');
  if (!fresh.content) return { kind: 'compare', text: '', diagnostics };
  const scenes = onOneNode(
    sceneFrom(from.name, old.content, old.objects),
    sceneFrom(to.name, fresh.content, fresh.objects),
  );
  const text = from.text === to.text ? compareFlags(from, to, scenes) : compareVersions(scenes);
  return { kind: 'compare', text, diagnostics };
}

/** The same manifests in two modes or by two releases: which packets end otherwise. */
function compareFlags(from: Input, to: Input, scenes: readonly [Scene, Scene]): string {
  const findings = new Findings();
  const { classes, unknown } = compareScenes(...scenes, findings.collector(...scenes));
  const isOfModes = from.mode !== to.mode;
  const nameOf = ({ mode, release }: Input): string => (isOfModes ? mode : release);
  const report = {
    from: nameOf(from),
    to: nameOf(to),
    nodes: 1,
    asked: 1,
    classes,
    unknown,
    findings: findings.list(),
  };
  return formatEquivalence(report, isOfModes ? preparationsFor(...scenes) : undefined, 'text', true);
}

/** Two versions of the manifests: what kpc diff says. */
function compareVersions([from, to]: readonly [Scene, Scene]): string {
  const diff = diffSides(from.side, to.side, { foreign: false });
  const ports = Math.max(from.ports.length, to.ports.length);
  const packets = diff.servicePorts.length === 0 || ports > mostAsked ? undefined : effectsByService(from, to);
  const limits = { servicePorts: limit, lines: limit };
  const report = reportReview({ from: from.side, to: to.side, diff, packets }, limits);
  return formatText(report, painter(true));
}
