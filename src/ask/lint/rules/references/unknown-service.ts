import { uniqueBy } from '../../../../cluster/grouping.ts';
import { findNearest } from '../../../../base/names.ts';
import {
  fullName,
  type Ingress,
  type IngressBackend,
  type Service,
  type Sourced,
} from '../../../../cluster/objects.ts';
import { hasWord, makersByNamespace, nameOfMaker } from '../../../../cluster/slices/selector-causes.ts';
import type { RuleFinding, LintRule } from '../../rule.ts';

/** Finds Services and ports that an Ingress, route or StatefulSet names but that the input lacks. */
export const unknownService: LintRule<'unknown-service'> = {
  check: ({ loaded: { inputs } }) => {
    const { services, ingresses, workloads, unread } = inputs;
    if (unread.has('services')) return [];
    const known = new Map(services.map(({ object }) => [fullName(object.metadata), object]));
    const namespaces = new Set(services.map(({ object }) => object.metadata.namespace));
    /** If the input has no Service in a namespace, the namespace's Services may be in another input. */
    const isMissing = (namespace: string, name: string): boolean =>
      namespaces.has(namespace) && !known.has(fullName({ namespace, name }));
    const makers = makersByNamespace(inputs);
    const guess = (namespace: string, name: string) => {
      const maker = makers.get(namespace)?.find((each) => each.makes !== 'templates' && hasWord(name, each.name));
      return { near: near(fullName({ namespace, name })), ...(maker ? { maker: nameOfMaker(maker) } : {}) };
    };
    const near = (name: string): string | undefined => findNearest(name, [...known.keys()], 2);
    const ofStatefulSets = workloads.flatMap(({ object, source }): readonly RuleFinding<'unknown-service'>[] => {
      const { kind, metadata, template } = object;
      const { namespace } = metadata;
      const name = template.spec.subdomain;
      if (kind !== 'StatefulSet' || name === '' || !isMissing(namespace, name)) return [];
      const missing = fullName({ namespace, name });
      const owner = `${kind} ${fullName(metadata)}`;
      const details = { problem: 'service-name', owner, missing, ...guess(namespace, name) } as const;
      return [{ details, place: source.place(['spec', 'serviceName']) }];
    });
    const ofRoutes = ingresses.flatMap((ingress) =>
      listBackends(ingress).flatMap(({ service, namespace, port }): readonly RuleFinding<'unknown-service'>[] => {
        const owner = `${ingress.object.kind} ${fullName(ingress.object.metadata)}`;
        const place = ingress.source.place(['spec', 'rules']);
        const name = fullName({ namespace, name: service });
        if (isMissing(namespace, service)) {
          return [{ details: { problem: 'backend', owner, missing: name, ...guess(namespace, service) }, place }];
        }
        const own = known.get(name);
        if (!own || own.spec.type === 'ExternalName' || port === '' || hasPort(own, port)) return [];
        const ports = own.spec.ports.map((each) => (each.name === '' ? `${each.port}` : `${each.port} (${each.name})`));
        return [{ details: { problem: 'port', owner, service: name, port, ports }, place }];
      }),
    );
    return [...ofStatefulSets, ...ofRoutes];
  },
};

/** Lists each backend once. Leaves out names that an annotation defines, which some controllers use for an action. */
function listBackends({
  object: { metadata, routes },
}: Sourced<Ingress>): readonly (IngressBackend & { service: string })[] {
  const annotations = Object.keys(metadata.annotations);
  const named = routes
    .flatMap(({ backends }) => backends)
    .flatMap((backend) => (backend.service === undefined ? [] : [{ ...backend, service: backend.service }]))
    .filter(({ service }) => !annotations.some((key) => key.endsWith(`.${service}`)));
  return uniqueBy(named, ({ namespace, service, port }) => `${namespace}/${service}:${port}`);
}

function hasPort({ spec }: Service, port: string): boolean {
  return spec.ports.some(({ name, port: number }) => String(number) === port || name === port);
}
