import { groupBy } from '../../cluster/grouping.ts';
import type { PodMaker } from '../../input/objects/unread-kinds.ts';
import type { Inputs } from '../../input/read-inputs.ts';

/** What may make Pods and Services that the input does not show. Controllers do for a Gateway, as for a custom resource. */
export function makersByNamespace({ podMakers, gateways }: Inputs): ReadonlyMap<string, readonly PodMaker[]> {
  const ofGateways = gateways.map(({ object: { metadata } }): PodMaker => {
    const { name, namespace } = metadata;
    const group = 'gateway.networking.k8s.io';
    return { kind: 'Gateway', name, namespace, group, isCustom: true, templates: [], namespaces: [] };
  });
  const placed = [...podMakers, ...ofGateways].flatMap((maker) =>
    [maker.namespace, ...maker.namespaces].map((namespace) => ({ namespace, maker })),
  );
  const groups = groupBy(placed, ({ namespace }) => namespace);
  return new Map([...groups].map(([namespace, own]) => [namespace, own.map(({ maker }) => maker)]));
}

/** "HelmRelease default/forge". */
export function nameOfMaker({ kind, namespace, name }: PodMaker): string {
  return `${kind} ${namespace}/${name}`;
}

/** Operators label the Pods of "mongo" with "mongo-svc" or "shop.mongo". */
export function hasWord(text: string, word: string): boolean {
  return word !== '' && `.${text.replaceAll(/[-_]/g, '.')}.`.includes(`.${word.replaceAll(/[-_]/g, '.')}.`);
}
