import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { Family } from '../../kernel/address.ts';
import { isArrival, type PacketProtocol } from '../../packet/packet.ts';
import { packetOf } from '../trace/ask.ts';
import { readSender } from '../trace/read-sender.ts';
import type { Sender } from '../trace/question.ts';
import { sceneOf, type Scene } from '../trace/scene.ts';
import type { PacketClaim, PacketEnd } from './rule.ts';
import { pathBelow } from '../../base/names.ts';
import { count } from '../../base/printable.ts';
import type { NodeOptions } from '../../snapshot/open/compile.ts';
import { isOfCompiling, type FindingCode } from '../../base/findings/codes.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import type { TextFile } from '../../input/documents/text-file.ts';
import { hasObjects } from '../../input/read-inputs.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { applyIgnores, type Ignore } from './ignores.ts';
import { namesMode, readLintInput, type LintInput } from './lint-input.ts';
import { ruleCodes, lintRuleOf } from './rules.ts';
import { subjectsOf, type Subjects } from './subjects.ts';

/** Returns how a claimed packet ends according to kpc trace for the same input. Undefined if kpc trace has no answer. */
type TracePacket = (claim: PacketClaim) => PacketEnd | undefined;

function packetTracer({ snapshots }: LintInput): TracePacket {
  const scenes = new Map<string, Scene | undefined>();
  const senders = new Map<string, Sender | undefined>();
  const sceneAt = (node: string): Scene | undefined => {
    if (!scenes.has(node)) {
      const side = snapshots.find(({ nodeName }) => nodeName === node);
      scenes.set(node, side && sceneOf(side));
    }
    return scenes.get(node);
  };
  const senderAt = (scene: Scene, { from, node }: PacketClaim, family: Family): Sender | undefined => {
    const key = `${from} ${family} ${node}`;
    if (!senders.has(key)) {
      const read = readSender({ from, inInterface: undefined, namespace: undefined }, family, scene);
      senders.set(key, read.kind === 'read' ? read.value : undefined);
    }
    return senders.get(key);
  };
  return (claim) => {
    const scene = sceneAt(claim.node);
    const sender = scene && senderAt(scene, claim, claim.to.family);
    if (!scene || !sender) return undefined;
    const protocol = claim.protocol.toLowerCase() as PacketProtocol;
    const fate = scene.evaluate(packetOf(sender, { address: claim.to, port: claim.port, protocol, label: undefined }));
    const { verdict } = fate;
    if (isArrival(verdict) && fate.connection().kind === 'fails') return 'fails';
    return verdict === 'unknown' ? undefined : verdict;
  };
}

export interface LintOutcome {
  readonly findings: readonly Finding[];
  readonly ignored: readonly Finding[];
  readonly notes: readonly Finding[];
  readonly hasRun: boolean;
  /** Whether the input has objects without errors, which can be checked alone. */
  readonly hasRight: boolean;
  readonly mode: ProxyMode;
  readonly namesMode: boolean;
  readonly services: number;
  /** The number of Services whose endpoints were not checked, because the input has none. */
  readonly unserved: number;
  readonly nodes: number;
  readonly snapshots: readonly CompiledSnapshot[];
  readonly files: readonly string[];
  /** Each file's path relative to the command-line argument from which kpc found the file. */
  readonly below: ReadonlyMap<string, string>;
}

export function lintInputs(loaded: LoadedInputs, options: NodeOptions, ignores: readonly Ignore[]): LintOutcome {
  const { input, diagnostics } = readLintInput(loaded, options);
  const subjects = subjectsOf(loaded);
  // After an error, the findings of lint rules are left out, because the error may have caused them.
  const isOfRules = (code: FindingCode): boolean => (input ? lintRuleOf(code)?.check : lintRuleOf(code)) !== undefined;
  const said = [...diagnostics, ...diagnoseNothingRead(loaded, diagnostics)]
    .filter((each) => !isOfRules(each.code) && (isError(each) || !isOfCompiling(each.code)))
    .map(subjects.name);
  const isNote = (each: Finding): boolean =>
    each.severity === 'note' && !lintRuleOf(each.code) && !subjects.isInObject(each);
  const ofObjects = said.filter((each) => !isNote(each));
  const found = input ? judge(ofObjects, input, subjects) : ofObjects;
  const { kept, ignored, idle } = applyIgnores(found, ignores, loaded.inputs, subjects);
  // If the rules have not run, an ignore that matches nothing may still be needed later.
  const shownIdle = input ? idle : idle.filter(isCertain);
  return {
    findings: sortDiagnostics([...kept, ...shownIdle]),
    ignored,
    notes: said.filter(isNote),
    hasRun: input !== undefined,
    hasRight: hasObjects(loaded.inputs),
    mode: loaded.settings.mode,
    namesMode: namesMode(loaded),
    services: input?.services.length ?? 0,
    unserved: input?.services.filter(({ ports, isGiven }) => ports.length > 0 && !isGiven).length ?? 0,
    nodes: input?.nodes.length ?? 0,
    snapshots: input?.snapshots ?? [],
    files: [...loaded.files.keys()],
    below: new Map([...loaded.files.values()].map((file) => [file.name, nameBelow(file)])),
  };
}

/** Returns an error if kpc reads none of the objects in the input. A check of nothing must not pass. */
function diagnoseNothingRead({ inputs }: LoadedInputs, said: readonly Finding[]): readonly Finding[] {
  if (hasObjects(inputs) || inputs.skipped.size === 0 || said.some(isError)) return [];
  const kinds = [...inputs.skipped].map(([kind, number]) => count(number, kind));
  return [diagnose('no-input', { problem: 'nothing-read', kinds })];
}

function isCertain(idle: Finding): boolean {
  return idle.code !== 'idle-ignore' || idle.arguments.problem !== 'matches-nothing';
}

function nameBelow({ name, origin }: TextFile): string {
  return origin ? pathBelow(origin.folder, name) : (name.split('/').at(-1) ?? name);
}

function judge(said: readonly Finding[], input: LintInput, subjects: Subjects): readonly Finding[] {
  const trace = packetTracer(input);
  return [...showSaid(said, input, trace), ...runRules(input, subjects, trace)];
}

function runRules(input: LintInput, subjects: Subjects, trace: TracePacket): readonly Finding[] {
  return ruleCodes.flatMap((code) =>
    (lintRuleOf(code)?.check?.(input) ?? []).flatMap(({ details, place, packet }): readonly Finding[] => {
      const evidence = show(packet, trace);
      return evidence === 'otherwise' ? [] : [{ ...subjects.name(diagnose(code, details, place)), evidence }];
    }),
  );
}

function showSaid(said: readonly Finding[], input: LintInput, trace: TracePacket): readonly Finding[] {
  const services = new Map(input.services.map((service) => [service.name, service]));
  return said.map((finding) => {
    const { code, arguments: details, about } = finding;
    const packet = lintRuleOf(code)?.show?.(details, input, services.get(about?.name ?? ''));
    const evidence = show(packet, trace);
    return evidence === 'otherwise' ? finding : { ...finding, evidence };
  });
}

/** Returns how a packet ends. Undefined if that is unknown; 'otherwise' if the packet's end disproves the finding. */
function show(packet: PacketClaim | undefined, trace: TracePacket): Finding['evidence'] | 'otherwise' {
  const verdict = packet && trace(packet);
  if (!packet || verdict === undefined) return undefined;
  const { ends, ...evidence } = packet;
  return ends.includes(verdict) ? { ...evidence, verdict } : 'otherwise';
}
