import { line, type DescriptionLine } from '../../describe/describe-words.ts';
import type { Ingress, IngressRoute, Sourced } from '../../cluster/objects.ts';
import { ask, isNamed, nearNames, wrong, type Question, type Read, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

/** A request's way over an Ingress: from its controller on to Services. */
export interface IngressWay {
  /** "namespace/name". */
  readonly name: string;
  readonly lines: readonly DescriptionLine[];
  readonly routes: readonly { readonly host: string; readonly path: string | undefined; readonly to: string }[];
  readonly traces: readonly Trace[];
}

/** The Ingress that a question is about, "ingress/name", "https://host/path" or "host/path"; undefined if it is about none. */
export function followIngress(question: Question, scene: Scene): Read<IngressWay> | undefined {
  const { ingresses } = scene.objects;
  const { to, namespace } = question;
  const name = /^ing(?:ress(?:es)?)?\/(.+)$/i.exec(to)?.[1];
  if (name !== undefined) {
    const wanted = name.includes('/') || namespace === undefined ? name : `${namespace}/${name}`;
    const own = ingresses.filter((each) => isNamed(nameOf(each), wanted));
    const [ingress, ...others] = own;
    if (!ingress)
      return wrong({
        problem: 'no-such',
        kind: 'Ingress',
        name: wanted,
        near: nearNames(wanted, ingresses.map(nameOf)),
      });
    if (others.length > 0) return wrong({ problem: 'several', kind: 'Ingress', name, names: own.map(nameOf) });
    return follow(ingress, ingress.object.routes, question, scene);
  }
  const [, scheme, host = '', path = '/'] = /^(https?:\/\/)?([^/:]+)(?::\d+)?(\/.*)?$/i.exec(to) ?? [];
  const found = bestRoute(host.toLowerCase(), path, ingresses);
  if (found && (scheme !== undefined || found.route.host !== ''))
    return follow(found.ingress, [found.route], question, scene);
  return scheme === undefined ? undefined : wrong({ problem: 'no-ingress-of-host', request: `${host}${path}` });
}

function nameOf({ object: { metadata } }: Sourced<Ingress>): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** The route of a request: the most exact host first, then an exact path, then the longest prefix. */
function bestRoute(host: string, path: string, ingresses: readonly Sourced<Ingress>[]) {
  const fitting = ingresses.flatMap((ingress) =>
    ingress.object.routes
      .filter((route) => fitsHost(route.host, host) && fitsPath(route, path))
      .map((route) => ({ ingress, route })),
  );
  const weighHost = ({ host: pattern }: IngressRoute): number => (pattern === host ? 2 : pattern === '' ? 0 : 1);
  const weighPath = ({ path: prefix, isExact }: IngressRoute): number =>
    prefix === undefined ? -1 : isExact ? Number.MAX_SAFE_INTEGER : prefix.length;
  return fitting.toSorted(
    ({ route: a }, { route: b }) => weighHost(b) - weighHost(a) || weighPath(b) - weighPath(a),
  )[0];
}

/** A wildcard matches one label. */
function fitsHost(pattern: string, host: string): boolean {
  if (pattern.startsWith('*.')) return host.slice(host.indexOf('.')) === pattern.slice(1) && !host.startsWith('.');
  return pattern === '' || pattern === host;
}

/** A prefix ends where an element of the path does. */
function fitsPath({ path: wanted, isExact }: IngressRoute, path: string): boolean {
  if (wanted === undefined || path === wanted) return true;
  const prefix = wanted.replace(/\/$/, '');
  return !isExact && (path === prefix || path.startsWith(`${prefix}/`));
}

function follow(
  ingress: Sourced<Ingress>,
  routes: readonly IngressRoute[],
  question: Question,
  scene: Scene,
): Read<IngressWay> {
  const { object, source } = ingress;
  const { namespace } = object.metadata;
  const { file, line: row, column } = source.place([]).locate();
  const named = routes.map(({ host, path, backend }) => ({
    host,
    path,
    to: backend ? `${namespace}/${backend.service}:${backend.port}` : 'something else than a Service',
  }));
  const backends = routes.flatMap(({ backend }, i) => (backend ? [`svc/${named[i]?.to}`] : []));
  const problems: string[] = [];
  const traces: Trace[] = [];
  for (const to of new Set(backends)) {
    const answer = ask({ ...question, from: 'pod', to, protocol: 'tcp' }, scene);
    if (answer.kind === 'read') traces.push(answer.value);
    else problems.push(...answer.faults.map(({ diagnostic: { text, help } }) => `${text}: ${help}`));
  }
  const lines = [
    line('heading', 0, `Ingress ${nameOf(ingress)}  (${file}:${row}:${column})`),
    ...named.map(({ host, path, to }) => {
      const request = path === undefined ? 'everything else' : `${host === '' ? 'any host' : host} ${path}`;
      return line('plain', 1, `${request} → ${to}`);
    }),
    ...problems.map((text) => line('bad', 1, text)),
    line('dim', 1, 'assumed: the controller is a pod on this node and connects to the cluster IPs of Services'),
  ];
  return { kind: 'read', value: { name: nameOf(ingress), lines, routes: named, traces } };
}
