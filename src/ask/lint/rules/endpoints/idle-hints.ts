import type { ServicePort } from '../../../../cluster/model.ts';
import { explainUnboundHints, isExternallyAccessible, type UnboundHints } from '../../../../cluster/endpoint-choice.ts';
import { groupBy } from '../../../../cluster/grouping.ts';
import type { FieldPath, Service } from '../../../../cluster/objects.ts';
import { behavioursOf, type Behaviour } from '../../../../kube-proxy/releases.ts';
import { claimedSocket, ofServices, type RuleFinding, type LintRule } from '../../rule.ts';
import type { LintedService, LintInput } from '../../lint-input.ts';

type IdleHint = RuleFinding<'idle-hints'>;

interface AskingField {
  readonly field: string;
  readonly path: FieldPath;
  readonly needs: readonly Behaviour[];
}

const annotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

function askingOf({ metadata, spec }: Service): AskingField | undefined {
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

/** Finds hints that have no effect, and fields that ask for hints without effect. */
export const idleHints: LintRule<'idle-hints'> = ofServices((service, input) => {
  if (service.ports.length === 0) return undefined;
  const asking = askingOf(service.object);
  return (asking && findIdleHint(asking, service, input)) ?? findUnbound(service, input);
});

function findIdleHint(
  { field, path, needs }: AskingField,
  { name, ports, slices, object, source }: LintedService,
  { loaded: { settings, gates } }: LintInput,
): IdleHint | undefined {
  const place = source.place(path);
  const about = { service: name, field };
  if (object.spec.internalTrafficPolicy === 'Local' && !ports.some(isExternallyAccessible)) {
    return { details: { ...about, problem: 'policy-local' }, place };
  }
  const { release } = settings;
  const behaviours = behavioursOf(release, gates);
  const behaviour = needs.find((each) => !behaviours.has(each));
  if (behaviour !== undefined) return { details: { ...about, problem: 'not-in-release', release, behaviour }, place };
  const endpoints = slices.flatMap((slice) => slice.object.endpoints).filter(({ status }) => status.ready);
  const areHinted = endpoints.some(({ status }) => status.zoneHints.length + status.nodeHints.length > 0);
  if (endpoints.length === 0 || areHinted) return undefined;
  return { details: { ...about, problem: 'no-hints', endpoints: endpoints.length }, place };
}

function findUnbound(
  { name, ports, source, knowsEndpoints }: LintedService,
  { nodes }: LintInput,
): readonly IdleHint[] {
  if (!knowsEndpoints || !ports.some(hasHints)) return [];
  const found = nodes.flatMap((node) =>
    node.cluster.addresses
      .portsOf(name)
      .flatMap((port) => {
        const why = explainUnboundHints(port, node.node);
        return why ? [{ node, port, why }] : [];
      })
      .slice(0, 1),
  );
  const reasons = groupBy(found, ({ why }) => (why.kind === 'endpoint-without-hint' ? why.endpoint : why.kind));
  return [...reasons.values()].map((own): IdleHint => {
    const [{ node, port, why }] = own;
    const of = { service: name, nodes: own.map((each) => each.node.nodeName), of: nodes.length };
    const zones = own.flatMap((each) => (each.why.kind === 'none-for-zone' ? each.why.zone : []));
    return {
      details: unboundDetails(why, of, [...new Set(zones)]),
      place: source.place(['metadata', 'name']),
      // The packet shows which endpoints the node uses.
      packet: { ...claimedSocket(port), from: 'node', to: port.clusterIP, node: node.nodeName, ends: ['delivered'] },
    };
  });
}

function unboundDetails(
  why: UnboundHints,
  of: { readonly service: string; readonly nodes: readonly string[]; readonly of: number },
  zones: readonly string[],
): IdleHint['details'] {
  switch (why.kind) {
    case 'endpoint-without-hint':
      return { problem: why.kind, ...of, endpoint: why.endpoint };
    case 'node-without-zone':
      return { problem: why.kind, ...of };
    case 'none-for-zone':
      return { problem: why.kind, ...of, zones };
  }
}

function hasHints({ endpoints }: ServicePort): boolean {
  return endpoints.some(({ status }) => status.zoneHints.length > 0);
}
