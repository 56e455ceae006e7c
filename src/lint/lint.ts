import { pathBelow } from '../base/file-names.ts';
import type { ServicePort } from '../cluster/model.ts';
import { fullName } from '../cluster/objects.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { NodeOptions } from '../snapshot/open/compile.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import { codes } from '#codes';
import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { isLoopback, parseAddress } from '../kernel/address.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Verdict } from '../packet/packet.ts';
import {
  findEndingAddresses,
  findHeadlessAddresses,
  findNodesShutOut,
  findOpenNodePorts,
  findRefusedClusterIPs,
  findStrangeNodePorts,
  findTakenHealthChecks,
  findUnboundRanges,
  findUnservedAddresses,
} from './address-rules.ts';
import {
  findLackingFamilies,
  findUngiven,
  findUnserved,
  findUnusedPorts,
  findVirtualEndpoints,
} from './endpoint-rules.ts';
import { unanswered, type Finding, type PacketClaim } from './finding.ts';
import { findIdleHints } from './hint-rules.ts';
import { applyIgnores, type Ignore } from './ignores.ts';
import { objectFinder, titleOf } from './listed-objects.ts';
import { namesMode, readLintInput, serviceOf, type LintInput } from './lint-input.ts';
import { packetTracer, type TracePacket } from './packets.ts';
import { findPolicyPorts } from './network-policy-rules.ts';
import { findHostPorts } from './pod-rules.ts';
import { findExternalGaps, findInternalGaps, findUndetectedPods, socketOf } from './policy-rules.ts';
import { findIgnoredServices, findUnknownServices } from './reference-rules.ts';
import { findEmptySelections } from './selection-rules.ts';
import { findChangingModes, findFullSets, findIdleAffinity, findLaxARP } from './setting-rules.ts';

/** A finding, and how its packet ends, where kpc trace says that. */
export interface ShownFinding extends Finding {
  readonly shown: { readonly packet: PacketClaim; readonly verdict: Verdict } | undefined;
}

export interface LintResult {
  /** In the order of their places. */
  readonly findings: readonly ShownFinding[];
  readonly ignored: readonly ShownFinding[];
  /** How the input was read, as far as that leaves something open. */
  readonly notes: readonly Diagnostic[];
  /** False if errors of the input kept the rules from looking at it. */
  readonly hasRun: boolean;
  readonly mode: ProxyMode;
  /** Whether flags or the input name the mode. */
  readonly namesMode: boolean;
  /** How many Nodes the input has. */
  readonly nodes: number;
  /** All that were read. */
  readonly files: readonly string[];
  /** Their names below what was named on the command line. */
  readonly below: ReadonlyMap<string, string>;
}

type Rule = (input: LintInput, ipFamily: NodeOptions['ipFamily']) => readonly Finding[];

const rules: readonly Rule[] = [
  findInternalGaps,
  findExternalGaps,
  findUndetectedPods,
  findUnserved,
  findUngiven,
  findLackingFamilies,
  findUnusedPorts,
  findVirtualEndpoints,
  findEmptySelections,
  findEndingAddresses,
  findUnservedAddresses,
  findHeadlessAddresses,
  findOpenNodePorts,
  findUnboundRanges,
  findNodesShutOut,
  findStrangeNodePorts,
  findRefusedClusterIPs,
  findTakenHealthChecks,
  findIdleHints,
  findIdleAffinity,
  findChangingModes,
  findLaxARP,
  findFullSets,
  findHostPorts,
  findPolicyPorts,
  findUnknownServices,
  findIgnoredServices,
];

/** What the rules say Service by Service, or only where the input shows it. */
const ofRules: ReadonlySet<DiagnosticCode> = new Set([
  // A folder without Services is as right as any other.
  'nothing-programmed',
  'external-ips',
  'selects-nothing',
  'no-endpoints-given',
  'ipvs-ends',
]);

/** Warnings and notes on how manifests are compiled, which say nothing about them. */
const ofCompiling: ReadonlySet<DiagnosticCode> = new Set([
  'assumed',
  'assumed-endpoints',
  'endpoints-from-pods',
  'kubernetes-preview',
  'kubernetes-version',
  'no-load-balancer-ip',
  // Of Pods that kpc would assume: no manifest has their addresses.
  'no-pod-address',
  'no-service-cidrs',
  'skipped-kinds',
]);

/** Everything that is wrong with the input, but for what is ignored. */
export function lintInputs(loaded: LoadedInputs, options: NodeOptions, ignores: readonly Ignore[]): LintResult {
  const { ipFamily } = options;
  const { input, diagnostics } = readLintInput(loaded, options);
  // Beside an error, what a rule says may result from it.
  const isOfRules = (code: DiagnosticCode): boolean => (input ? ofRules.has(code) : codes[code].why !== undefined);
  const said = diagnostics.filter(
    (each) =>
      each.code !== 'default-mode' &&
      !isOfRules(each.code) &&
      (each.severity === 'error' || !ofCompiling.has(each.code)),
  );
  const objectAt = objectFinder(loaded.inputs);
  // On the input as a whole. What points into an object is a finding.
  const isNote = ({ severity, code, place }: Diagnostic): boolean =>
    severity === 'note' && codes[code].why === undefined && objectAt(place) === undefined;
  const trace = packetTracer(loaded, ipFamily);
  const names = nameServices(loaded, input);
  const found = [
    ...said.filter((each) => !isNote(each)).map((diagnostic) => showSaid(diagnostic, input, names, trace)),
    ...(input ? rules.flatMap((rule) => rule(input, ipFamily)).flatMap((finding) => show(finding, trace) ?? []) : []),
  ].map((finding) => withSubjects(finding, names, objectAt));
  const { kept, ignored, idle } = applyIgnores(found, ignores, loaded.inputs);
  // What is not looked at cannot match.
  const shownIdle = input ? idle : idle.filter(isCertain);
  return {
    findings: inOrder([...kept, ...shownIdle.map(bare)]),
    ignored,
    notes: said.filter(isNote),
    hasRun: input !== undefined,
    mode: loaded.prepared.settings.mode,
    namesMode: namesMode(loaded),
    nodes: input?.nodes.length ?? 0,
    files: [...loaded.files.keys()],
    below: new Map([...loaded.files.values()].map((file) => [file.name, nameBelow(file)])),
  };
}

function isCertain(idle: Diagnostic): boolean {
  return idle.code !== 'idle-ignore' || idle.arguments.problem !== 'matches-nothing';
}

function nameBelow({ name, origin }: TextFile): string {
  return origin ? pathBelow(origin.folder, name) : (name.split('/').at(-1) ?? name);
}

function bare(diagnostic: Diagnostic): ShownFinding {
  return { diagnostic, service: undefined, shown: undefined };
}

/** Undefined if the packet that shows the finding ends in another way: then it is not true of this mode or node. */
function show(finding: Finding, trace: TracePacket): ShownFinding | undefined {
  const { packet } = finding;
  const verdict = packet && trace(packet);
  if (!packet || verdict === undefined) return { ...finding, shown: undefined };
  return packet.ends.includes(verdict) ? { ...finding, shown: { packet, verdict } } : undefined;
}

/** A diagnostic that any command gives, with the Service that it is about, and a packet where it speaks of one. */
function showSaid(
  diagnostic: Diagnostic,
  input: LintInput | undefined,
  names: Names,
  trace: TracePacket,
): ShownFinding {
  const service = findService(diagnostic, names);
  const ports = names.portsOf.get(service ?? '') ?? [];
  const packet = input && packetOfDiagnostic(diagnostic, ports, input);
  return show({ diagnostic, service, packet }, trace) ?? { diagnostic, service, shown: undefined };
}

interface Names {
  /** By the labels of ports. */
  readonly serviceOfLabel: ReadonlyMap<string, string>;
  /** By the names of Services. */
  readonly portsOf: ReadonlyMap<string, readonly ServicePort[]>;
}

function nameServices({ prepared: { cluster } }: LoadedInputs, input: LintInput | undefined): Names {
  return {
    serviceOfLabel: new Map(cluster.servicePorts.map((port) => [port.label, serviceOf(port)])),
    portsOf: new Map((input?.services ?? []).map(({ name, ports }) => [name, ports])),
  };
}

function findService({ arguments: details }: Diagnostic, { serviceOfLabel }: Names): string | undefined {
  const { service, servicePort, rival, services } = details as Readonly<Record<string, unknown>>;
  if (typeof service === 'string') return service;
  if (Array.isArray(services) && services.length === 1) return String(services[0]);
  const label = servicePort ?? rival;
  return typeof label === 'string' ? serviceOfLabel.get(label) : undefined;
}

/** Adds what the finding is about: the object at its place, and a second Service that it names. */
function withSubjects(
  finding: ShownFinding,
  { serviceOfLabel }: Names,
  objectAt: ReturnType<typeof objectFinder>,
): ShownFinding {
  const { place, arguments: details } = finding.diagnostic;
  const object = objectAt(place);
  // A Service, or the label of one of its ports.
  const { holder } = details as { readonly holder?: string };
  return {
    ...finding,
    service: finding.service ?? (object?.kind === 'Service' ? fullName(object.metadata) : undefined),
    object: object && titleOf(object),
    named: holder === undefined ? [] : [serviceOfLabel.get(holder) ?? holder],
  };
}

function packetOfDiagnostic(
  diagnostic: Diagnostic,
  ports: readonly ServicePort[],
  input: LintInput,
): PacketClaim | undefined {
  const node = input.nodes[0]?.name ?? '';
  const toClusterIP = (port: ServicePort | undefined): PacketClaim | undefined =>
    port && { ...socketOf(port), from: 'node', to: port.clusterIP, node, ends: unanswered };
  switch (diagnostic.code) {
    case 'unknown-port':
      return toClusterIP(ports.find((each) => each.port === diagnostic.arguments.port));
    // Shows the Service without endpoints, whose comment kpc has cut.
    case 'long-comment':
      return toClusterIP(ports.find((each) => each.label === diagnostic.arguments.servicePort));
    case 'address-conflict':
      return toClaimed(diagnostic.arguments, ports, input);
    case 'node-address': {
      const to = parseAddress(diagnostic.arguments.address);
      const other = input.nodes.find(({ name }) => name !== diagnostic.arguments.node);
      // Any port that no Service has shows it; this is the kubelet's.
      return (
        to && other && { from: 'node', to, port: 10250, protocol: 'TCP', node: other.name, ends: ['local', 'refused'] }
      );
    }
    default:
      return undefined;
  }
}

/** A packet to what two Service ports claim: one of them gets it. */
function toClaimed(
  { address, port, rival }: ArgumentsOf<'address-conflict'>,
  ports: readonly ServicePort[],
  { nodes }: LintInput,
): PacketClaim | undefined {
  const claiming = ports.find(({ label }) => label === rival);
  const [node] = nodes;
  const own = claiming && node?.context.nodeIPs[claiming.family];
  const to = address === undefined ? own : parseAddress(address);
  if (!claiming || !to || isLoopback(to)) return undefined;
  const { protocol } = claiming;
  return { from: 'external', to, port, protocol, node: node?.name ?? '', ends: ['delivered', 'local', ...unanswered] };
}

function inOrder(findings: readonly ShownFinding[]): readonly ShownFinding[] {
  const of = groupBy(findings, ({ diagnostic }) => keyOf(diagnostic));
  return sortDiagnostics(findings.map(({ diagnostic }) => diagnostic)).map(
    (diagnostic) => of.get(keyOf(diagnostic))?.[0] ?? bare(diagnostic),
  );
}

/** What is the same for two that sortDiagnostics takes for one. */
function keyOf({ code, text, place }: Diagnostic): string {
  return JSON.stringify([code, text, place?.locate() ?? '']);
}
