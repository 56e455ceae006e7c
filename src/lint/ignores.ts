import { findNearest } from '../base/find-nearest.ts';
import { fullName, type ObjectMeta, type Source } from '../cluster/objects.ts';
import type { Inputs } from '../input/read-inputs.ts';
import type { Location } from '../kernel/place.ts';
import { diagnosticCodes } from '../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Finding } from './finding.ts';

/** The annotation of an object whose findings of these codes are accepted: "external-ips, open-node-port". */
const ignoreAnnotation = 'kpc.dev/ignore';

/** A code that is accepted: of one Service, or of all. */
export interface Ignore {
  readonly code: string;
  /** "namespace/name", or the name alone for that of any namespace; undefined for all. */
  readonly service?: string | undefined;
  /** What asks for it: "--ignore", or the name of the file. */
  readonly by: string;
  readonly place?: Diagnostic['place'];
}

/** An ignore, and which findings it is about. */
interface Scoped extends Ignore {
  readonly covers: (finding: Finding) => boolean;
}

export interface Kept<F extends Finding> {
  readonly kept: readonly F[];
  readonly ignored: readonly F[];
  /** Ignores that match nothing, or name no code. */
  readonly idle: readonly Diagnostic[];
}

/** Leaves out what flags, kpc.yaml and the annotations of objects accept. */
export function applyIgnores<F extends Finding>(
  findings: readonly F[],
  ignores: readonly Ignore[],
  inputs: Inputs,
): Kept<F> {
  const all = [...ignores.map(scope), ...annotatedIgnores(inputs)];
  const used = new Set<Scoped>();
  const ignored = findings.filter((finding) => {
    const own = all.filter(({ code, covers }) => code === finding.diagnostic.code && covers(finding));
    for (const each of own) used.add(each);
    return own.length > 0;
  });
  const gone = new Set(ignored);
  return {
    kept: findings.filter((finding) => !gone.has(finding)),
    ignored,
    idle: all.filter((each) => !used.has(each)).map(describeIdle),
  };
}

function scope(ignore: Ignore): Scoped {
  const { service } = ignore;
  return {
    ...ignore,
    covers: (finding) =>
      service === undefined || finding.service === service || finding.service?.endsWith(`/${service}`) === true,
  };
}

function describeIdle({ by, code, service, place }: Ignore): Diagnostic {
  if (diagnosticCodes.some((each) => each === code)) {
    return diagnose('idle-ignore', { problem: 'matches-nothing', by, code, service }, place);
  }
  return diagnose(
    'idle-ignore',
    { problem: 'no-such-code', by, code, near: findNearest(code, diagnosticCodes) },
    place,
  );
}

interface Annotated {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'annotations'>;
  readonly source: Source;
}

/** An object covers what is about its Service, and what is found in its own lines. */
function annotatedIgnores(inputs: Inputs): readonly Scoped[] {
  const objects = listObjects(inputs);
  const startsOf = new Map<string, readonly number[]>();
  const linesOf = (source: Source): ((place: Location) => boolean) => {
    const { file, line } = source.place([]).locate();
    const starts = startsOf.get(file) ?? findStarts(objects, file);
    startsOf.set(file, starts);
    const end = starts.find((each) => each > line) ?? Number.POSITIVE_INFINITY;
    return (place) => place.file === file && place.line >= line && place.line < end;
  };
  return objects.flatMap(({ kind, metadata, source }): readonly Scoped[] => {
    const written = metadata.annotations[ignoreAnnotation];
    if (written === undefined) return [];
    const name = fullName(metadata);
    const place = source.place(['metadata', 'annotations', ignoreAnnotation]);
    const isInside = linesOf(source);
    const covers = ({ service, diagnostic }: Finding): boolean =>
      (kind === 'Service' && service === name) ||
      (diagnostic.place !== undefined && isInside(diagnostic.place.locate()));
    const codes = written.split(/[\s,]+/).filter((code) => code !== '');
    return codes.map((code) => ({ code, by: `${ignoreAnnotation} of ${kind} ${name}`, place, covers }));
  });
}

function listObjects({ services, slices, endpoints, nodes, pods, workloads, faulty }: Inputs): readonly Annotated[] {
  const lists = { Service: services, EndpointSlice: slices, Endpoints: endpoints, Node: nodes, Pod: pods } as const;
  return [
    ...Object.entries(lists).flatMap(([kind, list]) =>
      list.map(({ object, source }) => ({ kind, metadata: object.metadata, source })),
    ),
    ...workloads.map(({ object, source }) => ({ kind: object.kind, metadata: object.metadata, source })),
    ...faulty,
  ];
}

/** The lines of a file on which objects begin, in order. */
function findStarts(objects: readonly Annotated[], file: string): readonly number[] {
  return objects
    .map(({ source }) => source.place([]))
    .filter((place) => place.file === file)
    .map((place) => place.locate().line)
    .toSorted((a, b) => a - b);
}
