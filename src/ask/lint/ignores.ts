import { findNearest } from '../../base/names.ts';
import { fullName, titleOfObject } from '../../cluster/objects.ts';
import { ownAnnotations } from '../../cluster/check-services.ts';
import { keyOfObject, type Inputs } from '../../input/read-inputs.ts';
import { findingCodes } from '../../base/findings/codes.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { listObjects, type Subjects } from './subjects.ts';

const { ignore: ignoreAnnotation } = ownAnnotations;

export interface Ignore {
  readonly code: string;
  /** "namespace/name", or only a name, which matches in any namespace. Undefined for all Services. */
  readonly service?: string | undefined;
  /** Where the ignore is written: "--ignore", or the name of the file. */
  readonly by: string;
  readonly place?: Finding['place'];
}

interface Scoped extends Ignore {
  readonly covers: (finding: Finding) => boolean;
}

/**
 * Leaves out findings that flags, kpc.yaml and objects' annotations accept. Errors cannot be ignored, because an input with an error is not
 * compiled and the rest of it would stay unchecked.
 */
export function applyIgnores(
  findings: readonly Finding[],
  ignores: readonly Ignore[],
  inputs: Inputs,
  { servicesOf }: Pick<Subjects, 'servicesOf'>,
): { readonly kept: readonly Finding[]; readonly ignored: readonly Finding[]; readonly idle: readonly Finding[] } {
  const all = [...ignores.map((ignore) => scope(ignore, servicesOf)), ...annotatedIgnores(inputs, servicesOf)];
  const used = new Set<Scoped>();
  const refused = new Set<Scoped>();
  const ignored = findings.filter((finding) => {
    const own = all.filter(({ code, covers }) => code === finding.code && covers(finding));
    const isWrong = isError(finding);
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

function scope(ignore: Ignore, servicesOf: Subjects['servicesOf']): Scoped {
  const { service } = ignore;
  return {
    ...ignore,
    covers: (finding) =>
      service === undefined || servicesOf(finding).some((name) => name === service || name.endsWith(`/${service}`)),
  };
}

function describeIdle({ by, code, service, place }: Ignore): Finding {
  if (findingCodes.some((each) => each === code)) {
    return diagnose('idle-ignore', { problem: 'matches-nothing', by, code, service }, place);
  }
  return diagnose('idle-ignore', { problem: 'no-such-code', by, code, near: findNearest(code, findingCodes) }, place);
}

function annotatedIgnores(inputs: Inputs, servicesOf: Subjects['servicesOf']): readonly Scoped[] {
  return listObjects(inputs).flatMap((object): readonly Scoped[] => {
    const { kind, metadata, source } = object;
    const written = metadata.annotations[ignoreAnnotation];
    if (written === undefined) return [];
    const key = keyOfObject(source.place([]));
    const service = kind === 'Service' ? fullName(metadata) : undefined;
    const covers = (finding: Finding): boolean => {
      const { place } = finding;
      const isInside = key !== undefined && place !== undefined && keyOfObject(place) === key;
      return isInside || (service !== undefined && servicesOf(finding).includes(service));
    };
    const place = source.place(['metadata', 'annotations', ignoreAnnotation]);
    const codes = written.split(/[\s,]+/).filter((code) => code !== '');
    return codes.map((code) => ({ code, by: `${ignoreAnnotation} of ${titleOfObject(object)}`, place, covers }));
  });
}
