import { pathBelow } from '../base/file-names.ts';
import { fullName } from '../cluster/objects.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { NodeOptions } from '../snapshot/open/compile.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Verdict } from '../packet/packet.ts';
import type { Finding, PacketClaim } from './finding.ts';
import { applyIgnores, type Ignore } from './ignores.ts';
import { objectFinder, titleOf } from './listed-objects.ts';
import { namesMode, readLintInput, serviceOf } from './lint-input.ts';
import { packetTracer, type TracePacket } from './packets.ts';
import { ruleCodes, ruleOf } from './rules.ts';

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
  // A folder without Services is as right as any other.
  'nothing-programmed',
  'skipped-kinds',
]);

/** Everything that is wrong with the input, but for what is ignored. */
export function lintInputs(loaded: LoadedInputs, options: NodeOptions, ignores: readonly Ignore[]): LintResult {
  const { input, diagnostics } = readLintInput(loaded, options);
  // Beside an error, what a rule says may result from it.
  const isOfRules = (code: DiagnosticCode): boolean => (input ? ruleOf(code)?.check : ruleOf(code)) !== undefined;
  const said = diagnostics.filter(
    ({ severity, code }) => !isOfRules(code) && (severity === 'error' || !ofCompiling.has(code)),
  );
  const objectAt = objectFinder(loaded.inputs);
  // On the input as a whole. What points into an object is a finding.
  const isNote = ({ severity, code, place }: Diagnostic): boolean =>
    severity === 'note' && !ruleOf(code) && objectAt(place) === undefined;
  const serviceOfLabel = new Map(loaded.prepared.cluster.servicePorts.map((port) => [port.label, serviceOf(port)]));
  const aboutOf = (diagnostic: Diagnostic): Finding => findSubjects(diagnostic, serviceOfLabel, objectAt);
  const services = new Map(input?.services.map((service) => [service.name, service]));
  const trace = packetTracer(loaded, options.ipFamily);
  const found = said
    .filter((each) => !isNote(each))
    .map((diagnostic): ShownFinding => {
      const finding = aboutOf(diagnostic);
      const { code, arguments: details } = diagnostic;
      const packet = input && ruleOf(code)?.show?.(details, input, services.get(finding.service ?? ''));
      const shown = showPacket(packet, trace);
      return { ...finding, shown: shown === 'otherwise' ? undefined : shown };
    });
  for (const code of ruleCodes) {
    for (const { details, place, packet } of (input && ruleOf(code)?.check?.(input)) ?? []) {
      const shown = showPacket(packet, trace);
      if (shown !== 'otherwise') found.push({ ...aboutOf(diagnose(code, details, place)), shown });
    }
  }
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

/** How a packet ends; undefined if that is not known, 'otherwise' if not as it would if the finding were true. */
function showPacket(packet: PacketClaim | undefined, trace: TracePacket): ShownFinding['shown'] | 'otherwise' {
  const verdict = packet && trace(packet);
  if (!packet || verdict === undefined) return undefined;
  return packet.ends.includes(verdict) ? { packet, verdict } : 'otherwise';
}

/** What a diagnostic is about: the Service that its arguments name, or the object at its place; and a second Service. */
function findSubjects(
  diagnostic: Diagnostic,
  serviceOfLabel: ReadonlyMap<string, string>,
  objectAt: ReturnType<typeof objectFinder>,
): Finding {
  const object = objectAt(diagnostic.place);
  const { service, services, servicePort, rival, holder } = diagnostic.arguments as Readonly<Record<string, unknown>>;
  const [only, ...others] = Array.isArray(services) ? services.map(String) : [];
  const label = servicePort ?? rival;
  const named = typeof service === 'string' ? service : others.length === 0 ? only : undefined;
  const ofLabel = typeof label === 'string' ? serviceOfLabel.get(label) : undefined;
  return {
    diagnostic,
    service: named ?? ofLabel ?? (object?.kind === 'Service' ? fullName(object.metadata) : undefined),
    object: object && titleOf(object),
    // A Service, or the label of one of its ports.
    named: typeof holder === 'string' ? [serviceOfLabel.get(holder) ?? holder] : [],
  };
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
