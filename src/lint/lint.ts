import { pathBelow } from '../base/file-names.ts';
import { count } from '../base/format-count.ts';
import { fullName } from '../cluster/objects.ts';
import type { NodeOptions } from '../snapshot/open/compile.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Finding, PacketClaim } from './finding.ts';
import { applyIgnores, type Ignore } from './ignores.ts';
import { objectFinder, titleOf } from './listed-objects.ts';
import { namesMode, readLintInput, serviceOf, type LintInput } from './lint-input.ts';
import { packetTracer, type TracePacket } from './packets.ts';
import { ruleCodes, ruleOf } from './rules.ts';

export interface LintResult {
  /** In the order of their places. */
  readonly findings: readonly Finding[];
  readonly ignored: readonly Finding[];
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

/** Warnings and notes on how manifests are compiled, which say nothing about them. */
const ofCompiling: ReadonlySet<DiagnosticCode> = new Set([
  'assumed',
  'assumed-endpoints',
  'default-mode',
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
  const { input, diagnostics } = readLintInput(loaded, options);
  const trace = packetTracer(loaded, options.ipFamily);
  // Beside an error, what a rule says may result from it. Without one, a folder without Services is as right as any other.
  const isOfRules = (code: DiagnosticCode): boolean =>
    input ? ruleOf(code)?.check !== undefined || code === 'nothing-programmed' : ruleOf(code) !== undefined;
  const findSubjects = subjectFinder(loaded);
  const said = [...diagnostics, ...findNothing(loaded)]
    .filter(({ severity, code }) => !isOfRules(code) && (severity === 'error' || !ofCompiling.has(code)))
    .map(findSubjects);
  const ofObjects = said.filter((each) => !isNote(each));
  const found = input ? [...showSaid(ofObjects, input, trace), ...check(input, findSubjects, trace)] : ofObjects;
  const { kept, ignored, idle } = applyIgnores(found, ignores, loaded.inputs);
  // What is not looked at cannot match.
  const shownIdle = input ? idle : idle.filter(isCertain);
  return {
    findings: inOrder([
      ...kept,
      ...shownIdle.map((diagnostic) => ({ diagnostic, service: undefined, object: undefined, named: [] })),
    ]),
    ignored,
    notes: said.filter(isNote).map(({ diagnostic }) => diagnostic),
    hasRun: input !== undefined,
    mode: loaded.settings.mode,
    namesMode: namesMode(loaded),
    nodes: input?.nodes.length ?? 0,
    files: [...loaded.files.keys()],
    below: new Map([...loaded.files.values()].map((file) => [file.name, nameBelow(file)])),
  };
}

/** An error where the input has no object that kpc reads: to look at nothing is not to find nothing. */
function findNothing({ inputs }: LoadedInputs): readonly Diagnostic[] {
  const { services, slices, endpoints, nodes, serviceCidrs, pods, workloads, configs, facts } = inputs;
  const { ingresses, gateways, referenceGrants, policies, namespaces, skipped, diagnostics } = inputs;
  const lists = [services, slices, endpoints, nodes, serviceCidrs, pods, workloads, configs, facts];
  const isRead = [...lists, ingresses, gateways, referenceGrants, policies, namespaces].some(
    ({ length }) => length > 0,
  );
  if (isRead || skipped.size === 0 || diagnostics.some(isError)) return [];
  const kinds = [...skipped].map(([kind, number]) => count(number, kind));
  return [diagnose('no-input', { problem: 'nothing-read', kinds })];
}

/** Whether it is about the input as a whole. What points into an object is a finding. */
function isNote({ diagnostic: { severity, code }, object }: Finding): boolean {
  return severity === 'note' && !ruleOf(code) && object === undefined;
}

function isCertain(idle: Diagnostic): boolean {
  return idle.code !== 'idle-ignore' || idle.arguments.problem !== 'matches-nothing';
}

function nameBelow({ name, origin }: TextFile): string {
  return origin ? pathBelow(origin.folder, name) : (name.split('/').at(-1) ?? name);
}

/** What all rules find, but for what the packet that shows it denies. */
function check(input: LintInput, findSubjects: FindSubjects, trace: TracePacket): readonly Finding[] {
  return ruleCodes.flatMap((code) =>
    (ruleOf(code)?.check?.(input) ?? []).flatMap(({ details, place, packet }): readonly Finding[] => {
      const shown = showPacket(packet, trace);
      return shown === 'otherwise' ? [] : [{ ...findSubjects(diagnose(code, details, place)), shown }];
    }),
  );
}

/** What compiling finds, with the packets that the rules have for it. */
function showSaid(said: readonly Finding[], input: LintInput, trace: TracePacket): readonly Finding[] {
  const services = new Map(input.services.map((service) => [service.name, service]));
  return said.map((finding) => {
    const { code, arguments: details } = finding.diagnostic;
    const packet = ruleOf(code)?.show?.(details, input, services.get(finding.service ?? ''));
    const shown = showPacket(packet, trace);
    return shown === 'otherwise' ? finding : { ...finding, shown };
  });
}

/** How a packet ends; undefined if that is not known, 'otherwise' if not as it would if the finding were true. */
function showPacket(packet: PacketClaim | undefined, trace: TracePacket): Finding['shown'] | 'otherwise' {
  const verdict = packet && trace(packet);
  if (!packet || verdict === undefined) return undefined;
  return packet.ends.includes(verdict) ? { packet, verdict } : 'otherwise';
}

type FindSubjects = (diagnostic: Diagnostic) => Finding;

/**
 * Returns a function that says what a diagnostic is about: the Service that its arguments name, or the object at its place; and a
 * second Service.
 */
function subjectFinder({ inputs, cluster }: LoadedInputs): FindSubjects {
  const objectAt = objectFinder(inputs);
  const serviceOfLabel = new Map(cluster.servicePorts.map((port) => [port.label, serviceOf(port)]));
  return (diagnostic) => {
    const object = objectAt(diagnostic.place);
    const { service, services, servicePort, rival, holder } = diagnostic.arguments as Readonly<Record<string, unknown>>;
    const [only, ...others] = Array.isArray(services) ? services.map(String) : [];
    const named = typeof service === 'string' ? service : others.length === 0 ? only : undefined;
    const label = servicePort ?? rival;
    const ofLabel = typeof label === 'string' ? serviceOfLabel.get(label) : undefined;
    return {
      diagnostic,
      service: named ?? ofLabel ?? (object?.kind === 'Service' ? fullName(object.metadata) : undefined),
      object: object && titleOf(object),
      // A Service, or the label of one of its ports.
      named: typeof holder === 'string' ? [serviceOfLabel.get(holder) ?? holder] : [],
    };
  };
}

function inOrder(findings: readonly Finding[]): readonly Finding[] {
  const of = new Map(findings.map((finding) => [finding.diagnostic, finding]));
  return sortDiagnostics([...of.keys()]).flatMap((diagnostic) => of.get(diagnostic) ?? []);
}
