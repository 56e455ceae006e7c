// The lines of tools in a golden's files.
import { indexCluster } from '../cluster/address-index.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { Cluster, ServiceInfo } from '../cluster/model.ts';
import { goldenServiceFile, parseSections } from './golden-sections.ts';
import { formatFile, type BundleContent, type BundleFiles, type Compile } from './make-bundle.ts';
import { filesToRead } from './state-files.ts';

/** The file for everything that does not depend on Services. */
export const goldenNodeFile = 'node.txt';

type Texts = readonly (readonly [file: string, text: string])[];

interface GoldenParts {
  readonly base: Texts;
  readonly parts: readonly {
    readonly service: ServiceInfo;
    readonly file: string;
    readonly part: BundleContent;
    readonly texts: Texts;
  }[];
}

/** Compiles the node without Services, and each Service without the others. Leaves out the node's lines in the texts of a Service. */
export function compileParts(content: BundleContent, compile: Compile): GoldenParts {
  const { node, settings, families } = content;
  const partOf = (cluster: Cluster) => ({ ...content, cluster, state: compile(cluster, node, settings, families) });
  const textsOf = (part: BundleContent, lines: (name: (typeof filesToRead)[number], text: string) => string) =>
    filesToRead.map((name) => [name, lines(name, formatFile(name, part) ?? '')] as const);
  const { serviceCidrs } = content.cluster;
  const none = partOf(indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs }));
  const base = textsOf(none, (_, text) => text);
  const known = new Map(base.map(([name, text]) => [name, new Set(placeStateLines(text).map(({ place }) => place))]));
  const parts = splitCluster(content.cluster).map(({ service, cluster }) => {
    const part = partOf(cluster);
    const texts = textsOf(part, (name, text) => dropKnownLines(text, known.get(name) ?? new Set()));
    return { service, file: goldenServiceFile(service.namespace, service.name), part, texts };
  });
  return { base, parts };
}

const opens = (line: string): boolean => line.startsWith('*') || line.endsWith('{');
const closes = (line: string): boolean => line === 'COMMIT' || line.trim() === '}';

function placeStateLines(text: string): readonly { readonly line: string; readonly place: string }[] {
  const inside: string[] = [];
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  return lines.map((line) => {
    if (closes(line)) inside.pop();
    const place = [...inside, line].join('\n');
    if (opens(line)) inside.push(line);
    return { line, place };
  });
}

/** Removes lines that are in `known` at the same place. Keeps the lines that open and close tables. Returns "" if nothing else is left. */
function dropKnownLines(text: string, known: ReadonlySet<string>): string {
  const kept: string[] = [];
  for (const { line, place } of placeStateLines(text)) {
    // A table without lines of its own is left out.
    if (closes(line) && opens(kept.at(-1) ?? '')) kept.pop();
    else if (opens(line) || closes(line) || !known.has(place)) kept.push(line);
  }
  return kept.map((line) => `${line}\n`).join('');
}

function splitCluster({ services, servicePorts, healthChecks, serviceCidrs }: Cluster) {
  const portsOf = groupBy(servicePorts, ({ namespace, service }) => `${namespace}/${service}`);
  const checksOf = groupBy(healthChecks, ({ namespace, service }) => `${namespace}/${service}`);
  return services.map((service) => {
    const name = `${service.namespace}/${service.name}`;
    const own = { servicePorts: portsOf.get(name) ?? [], healthChecks: checksOf.get(name) ?? [] };
    return { service, cluster: indexCluster({ services: [service], ...own, serviceCidrs }) };
  });
}

/** Lists the files with other lines of tools than those that their Services compile to. */
export function findEdited(files: BundleFiles, content: BundleContent, compile: Compile): readonly string[] {
  const { base, parts } = compileParts(content, compile);
  return [{ file: goldenNodeFile, texts: base }, ...parts].flatMap(({ file, texts }) => {
    const own = parseSections(files.get(file) ?? '');
    return texts.some(([name, text]) => (own.get(name) ?? '') !== text) ? file : [];
  });
}
