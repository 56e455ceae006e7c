import type { DescriptionLine } from '../../describe/describe-words.ts';
import type { Ingress, IngressRoute, Sourced } from '../../cluster/objects.ts';
import { joinHostPort, parseAddress } from '../../kernel/address.ts';
import { ask, nearNames, wrong, type Question, type Read, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

/** A request's way over an Ingress: to its load balancer, and from its controller on to Services. */
export interface IngressWay {
  /** "namespace/name". */
  readonly name: string;
  readonly lines: readonly DescriptionLine[];
  readonly routes: readonly { readonly host: string; readonly path: string | undefined; readonly to: string }[];
  readonly traces: readonly Trace[];
}

/** The Ingress that a question is about, "ingress/name", "https://host/path" or "host/path"; undefined where it is about none. */
export function followIngress(question: Question, scene: Scene): Read<IngressWay> | undefined {
  const name = /^ing(?:ress(?:es)?)?\/(.+)$/i.exec(question.to)?.[1];
  if (name !== undefined) return followNamed(name, question, scene);
  const [, scheme, host = '', path = '/'] = /^(https?:\/\/)?([^/:]+)(?::\d+)?(\/.*)?$/i.exec(question.to) ?? [];
  const found = bestRoute(host.toLowerCase(), path, scene.ingresses);
  if (!found || (scheme === undefined && found.route.host === '')) {
    return scheme === undefined ? undefined : wrong({ problem: 'no-ingress-of-host', request: `${host}${path}` });
  }
  return follow(found.ingress, [found.route], question, scene);
}

function followNamed(name: string, question: Question, scene: Scene): Read<IngressWay> {
  const nameOf = ({ object: { metadata } }: Sourced<Ingress>): string => `${metadata.namespace}/${metadata.name}`;
  const wanted = name.includes('/') || question.namespace === undefined ? name : `${question.namespace}/${name}`;
  const own = scene.ingresses.filter(
    (each) => nameOf(each) === wanted || (!wanted.includes('/') && each.object.metadata.name === wanted),
  );
  const [ingress, ...others] = own;
  if (ingress && others.length === 0) return follow(ingress, ingress.object.routes, question, scene);
  if (ingress) return wrong({ problem: 'several-ingresses', name, names: own.map(nameOf) });
  return wrong({ problem: 'no-ingress', name: wanted, near: nearNames(wanted, scene.ingresses.map(nameOf)) });
}

/** The route of a request: the most exact host first, then an exact path, then the longest prefix. */
function bestRoute(host: string, path: string, ingresses: readonly Sourced<Ingress>[]) {
  const fitting = ingresses.flatMap((ingress) =>
    ingress.object.routes
      .filter((route) => fitsHost(route.host, host) && fitsPath(route, path))
      .map((route) => ({ ingress, route })),
  );
  const weigh = ({ host: pattern, path: prefix, isExact }: IngressRoute): readonly number[] => [
    pattern === host ? 2 : pattern === '' ? 0 : 1,
    prefix === undefined ? -1 : isExact ? Number.MAX_SAFE_INTEGER : prefix.length,
  ];
  return fitting.toSorted((a, b) => {
    const [hostOfA = 0, pathOfA = 0] = weigh(a.route);
    const [hostOfB = 0, pathOfB = 0] = weigh(b.route);
    return hostOfB - hostOfA || pathOfB - pathOfA;
  })[0];
}

/** A wildcard matches one label. */
function fitsHost(pattern: string, host: string): boolean {
  if (pattern.startsWith('*.')) return host.slice(host.indexOf('.')) === pattern.slice(1) && !host.startsWith('.');
  return pattern === '' || pattern === host;
}

/** A prefix ends where an element of the path does. */
function fitsPath({ path: wanted, isExact }: IngressRoute, path: string): boolean {
  if (wanted === undefined) return true;
  if (isExact) return path === wanted;
  const prefix = wanted.replace(/\/$/, '');
  return path === prefix || path.startsWith(`${prefix}/`);
}

function follow(
  { object, source }: Sourced<Ingress>,
  routes: readonly IngressRoute[],
  question: Question,
  scene: Scene,
): Read<IngressWay> {
  const { namespace } = object.metadata;
  const name = `${namespace}/${object.metadata.name}`;
  const { file, line, column } = source.place([]).locate();
  const told = routes.map(({ host, path, backend }) => ({
    host,
    path,
    to: backend ? `${namespace}/${backend.service}:${backend.port}` : 'something else than a Service',
  }));
  const problems: string[] = [];
  const traces: Trace[] = [];
  const trace = (from: string, to: string): void => {
    const answer = ask({ ...question, from, to, protocol: 'tcp' }, scene);
    if (answer.kind === 'read') traces.push(answer.value);
    else problems.push(...answer.faults.map(({ diagnostic: { text, help } }) => `${text}: ${help}`));
  };
  const port = object.hasTls ? 443 : 80;
  for (const text of object.addresses) {
    const address = parseAddress(text);
    const isKnown = scene.ports.some(
      (each) => each.port === port && each.addresses.some((own) => own.address.text === address?.text),
    );
    if (address && isKnown) trace(question.from, joinHostPort(address.text, port));
    else
      problems.push(
        `clients come by ${text}, which no Service of the input has: the way up to the controller is unknown`,
      );
  }
  const backends = routes.flatMap(({ backend }) =>
    backend ? [`svc/${namespace}/${backend.service}:${backend.port}`] : [],
  );
  for (const to of new Set(backends)) trace('pod', to);
  const lines: readonly DescriptionLine[] = [
    { role: 'heading', depth: 0, text: `Ingress ${name}  (${file}:${line}:${column})` },
    ...told.map(({ host, path, to }) => ({
      role: 'plain' as const,
      depth: 1,
      text: `${path === undefined ? 'everything else' : `${host === '' ? 'any host' : host} ${path}`} → ${to}`,
    })),
    ...problems.map((text) => ({ role: 'bad' as const, depth: 1, text })),
    {
      role: 'dim',
      depth: 1,
      text: 'assumed: the controller is a pod on this node and connects to the cluster IPs of Services',
    },
  ];
  return { kind: 'read', value: { name, lines, routes: told, traces } };
}
