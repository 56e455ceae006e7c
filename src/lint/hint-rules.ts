import type { ServicePort } from '../cluster/model.ts';
import { explainUnboundHints, isExternallyAccessible, type UnboundHints } from '../cluster/endpoint-choice.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { FieldPath, Service } from '../cluster/objects.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import { behavioursOf, type Behaviour, type Behaviours } from '../kube-proxy/releases.ts';
import type { Finding } from './finding.ts';
import type { LintedNode, LintedService, LintInput } from './lint-input.ts';
import { socketOf } from './policy-rules.ts';

/** What asks for hints: a field, and how it is written. */
interface Asking {
  readonly field: string;
  readonly path: FieldPath;
  /** What kube-proxy must do for it to count. */
  readonly needs: readonly Behaviour[];
}

const annotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

function askingOf({ metadata, spec }: Service): Asking | undefined {
  const annotation = annotations.find((name) => /^auto$/i.test(metadata.annotations[name] ?? ''));
  if (annotation !== undefined) {
    return { field: annotation, path: ['metadata', 'annotations', annotation], needs: ['zone-hints'] };
  }
  const { trafficDistribution: value } = spec;
  if (value === '') return undefined;
  const needs: readonly Behaviour[] =
    value === 'PreferSameNode' ? ['node-hints'] : ['zone-hints', 'zone-hints-without-annotation'];
  return { field: `trafficDistribution ${value}`, path: ['spec', 'trafficDistribution'], needs };
}

/** Hints, and fields that ask for them, that change nothing. */
export function findIdleHints(input: LintInput): readonly Finding[] {
  const { settings, loaded } = input;
  const behaviours = behavioursOf(settings.release, loaded.prepared.gates);
  return input.services.flatMap((service): readonly Finding[] => {
    if (service.ports.length === 0) return [];
    const asking = askingOf(service.object);
    const idle = asking && describeIdle(asking, service, input, behaviours);
    return idle ? [idle] : findUnbound(service, input);
  });
}

function describeIdle(
  { field, path, needs }: Asking,
  { name, ports, slices, object, source }: LintedService,
  { settings: { release } }: LintInput,
  behaviours: Behaviours,
): Finding | undefined {
  const place = source.place(path);
  const about = { service: name, field };
  if (object.spec.internalTrafficPolicy === 'Local' && !ports.some(isExternallyAccessible)) {
    return { service: name, diagnostic: diagnose('idle-hints', { ...about, problem: 'policy-local' }, place) };
  }
  const behaviour = needs.find((each) => !behaviours.has(each));
  if (behaviour !== undefined) {
    const details = { ...about, problem: 'not-in-release', release, behaviour } as const;
    return { service: name, diagnostic: diagnose('idle-hints', details, place) };
  }
  const endpoints = slices.flatMap((slice) => slice.object.endpoints).filter(({ status }) => status.ready);
  const areHinted = endpoints.some(({ status }) => status.zoneHints.length + status.nodeHints.length > 0);
  if (endpoints.length === 0 || areHinted) return undefined;
  const details = { ...about, problem: 'no-hints', endpoints: endpoints.length } as const;
  return { service: name, diagnostic: diagnose('idle-hints', details, place) };
}

/** The nodes that hints of a Service do not bind, and why: one finding for each reason. */
function findUnbound({ name, ports, source, knowsEndpoints }: LintedService, { nodes }: LintInput): readonly Finding[] {
  if (!knowsEndpoints || !ports.some(hasHints)) return [];
  const found = nodes.flatMap((node) =>
    node
      .portsOf(name)
      .flatMap((port) => {
        const why = explainUnboundHints(port, node.context);
        return why ? [{ node, port, why }] : [];
      })
      .slice(0, 1),
  );
  const reasons = groupBy(found, ({ why }) => (why.kind === 'endpoint-without-hint' ? why.endpoint : why.kind));
  return [...reasons.values()].map((own): Finding => {
    const [{ node, port }] = own;
    const of = { service: name, nodes: own.map((each) => each.node.name), of: nodes.length };
    const zones = own.flatMap(({ why }) => (why.kind === 'none-for-zone' ? why.zone : []));
    const diagnostic = describeUnbound(own[0].why, of, [...new Set(zones)], source.place(['metadata', 'name']));
    return { diagnostic, service: name, packet: toClusterIP(port, node) };
  });
}

function describeUnbound(
  why: UnboundHints,
  of: { readonly service: string; readonly nodes: readonly string[]; readonly of: number },
  zones: readonly string[],
  place: Parameters<typeof diagnose>[2],
) {
  switch (why.kind) {
    case 'endpoint-without-hint':
      return diagnose('idle-hints', { problem: why.kind, ...of, endpoint: why.endpoint }, place);
    case 'node-without-zone':
      return diagnose('idle-hints', { problem: why.kind, ...of }, place);
    case 'none-for-zone':
      return diagnose('idle-hints', { problem: why.kind, ...of, zones }, place);
  }
}

function hasHints({ endpoints }: ServicePort): boolean {
  return endpoints.some(({ status }) => status.zoneHints.length > 0);
}

/** Shows which endpoints the node uses. */
function toClusterIP(port: ServicePort, { name }: LintedNode): Finding['packet'] {
  return { ...socketOf(port), from: 'node', to: port.clusterIP, node: name, ends: ['delivered'] };
}
