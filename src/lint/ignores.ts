import { findNearest } from '../base/find-nearest.ts';
import { fullName } from '../cluster/objects.ts';
import { ownAnnotations } from '../cluster/own-annotations.ts';
import { keyOfObject, type Inputs } from '../input/read-inputs.ts';
import { diagnosticCodes } from '../diagnostics/codes.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Finding } from './finding.ts';
import { listObjects, titleOf } from './listed-objects.ts';

const { ignore: ignoreAnnotation } = ownAnnotations;

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

export interface Kept {
  readonly kept: readonly Finding[];
  readonly ignored: readonly Finding[];
  /** Ignores that match nothing or an error, or name no code. */
  readonly idle: readonly Diagnostic[];
}

/**
 * Leaves out what flags, kpc.yaml and the annotations of objects accept. That is never an error: with one, nothing is
 * compiled, so nothing else is known to be right.
 */
export function applyIgnores(findings: readonly Finding[], ignores: readonly Ignore[], inputs: Inputs): Kept {
  const all = [...ignores.map(scope), ...annotatedIgnores(inputs)];
  const used = new Set<Scoped>();
  const refused = new Set<Scoped>();
  const ignored = findings.filter((finding) => {
    const own = all.filter(({ code, covers }) => code === finding.diagnostic.code && covers(finding));
    const isWrong = isError(finding.diagnostic);
    for (const each of own) (isWrong ? refused : used).add(each);
    return own.length > 0 && !isWrong;
  });
  const gone = new Set(ignored);
  return {
    kept: findings.filter((finding) => !gone.has(finding)),
    ignored,
    idle: [
      ...[...refused].map(({ by, code, place }) => diagnose('idle-ignore', { problem: 'error', by, code }, place)),
      ...all.filter((each) => !used.has(each) && !refused.has(each)).map(describeIdle),
    ],
  };
}

function scope(ignore: Ignore): Scoped {
  const { service } = ignore;
  return {
    ...ignore,
    covers: (finding) =>
      service === undefined || servicesOf(finding).some((name) => name === service || name.endsWith(`/${service}`)),
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

/** An object covers what names its Service, and what is found in its own lines. */
function annotatedIgnores(inputs: Inputs): readonly Scoped[] {
  return listObjects(inputs).flatMap((object): readonly Scoped[] => {
    const { kind, metadata, source } = object;
    const written = metadata.annotations[ignoreAnnotation];
    if (written === undefined) return [];
    const key = keyOfObject(source.place([]));
    const service = kind === 'Service' ? fullName(metadata) : undefined;
    const covers = (finding: Finding): boolean => {
      const { place } = finding.diagnostic;
      const isInside = key !== undefined && place !== undefined && keyOfObject(place) === key;
      return isInside || (service !== undefined && servicesOf(finding).includes(service));
    };
    const place = source.place(['metadata', 'annotations', ignoreAnnotation]);
    const codes = written.split(/[\s,]+/).filter((code) => code !== '');
    return codes.map((code) => ({ code, by: `${ignoreAnnotation} of ${titleOf(object)}`, place, covers }));
  });
}

/** The Services that a finding is about, or names. */
function servicesOf({ service, named }: Finding): readonly string[] {
  return service === undefined ? named : [service, ...named];
}
