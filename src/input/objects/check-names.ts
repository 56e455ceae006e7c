import { isLabelValue, isName, type NameRule } from '../../base/object-names.ts';
import type { FieldPath, ObjectMeta } from '../../cluster/objects.ts';
import { StatusSharing } from '../../cluster/endpoint-status.ts';
import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import type { Report } from './report.ts';
import type { RawMetadata } from './schemas/shared.ts';
import { fieldName } from '../../base/printable.ts';

/** How many texts are remembered; others are checked each time. */
const maxRemembered = 100_000;

/**
 * Texts that were checked and found right. The names of a few nodes and zones come with every endpoint, and those of a few
 * namespaces with every object: they are checked once, and kept once.
 */
class CheckedTexts {
  readonly #known = new Map<string, string>();
  readonly #isRight: (text: string) => boolean;

  constructor(isRight: (text: string) => boolean) {
    this.#isRight = isRight;
  }

  /** The text, the same object for the same characters; undefined where it is not right. */
  find(text: string): string | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (!this.#isRight(text)) return undefined;
    if (this.#known.size < maxRemembered) this.#known.set(text, text);
    return text;
  }
}

/** What comes with many objects and endpoints of one run. */
export class CommonNames {
  readonly namespaces = new CheckedTexts((text) => isName(text, 'label'));
  readonly nodes = new CheckedTexts((text) => isName(text, 'subdomain'));
  readonly zones = new CheckedTexts(isLabelValue);
  readonly statuses = new StatusSharing();
}

/** Reports a name that the API server would refuse; it could break out of a rule's comment. */
export function checkName(text: string, rule: NameRule, path: FieldPath, report: Report): void {
  if (isName(text, rule)) return;
  report.add(path, 'bad-name', { field: fieldName(path), value: text, rule });
}

/** Checks an object's metadata and fills in the namespace. A Node has none. */
export function readMetadata(
  raw: RawMetadata | null | undefined,
  rule: NameRule,
  report: Report,
  names: CommonNames,
): ObjectMeta {
  const name = raw?.name ?? '';
  const given = raw?.namespace || 'default';
  const namespace = names.namespaces.find(given);
  if (name === '') {
    report.add(['metadata', 'name'], 'missing-name', { isGenerated: Boolean(raw?.generateName) });
  } else {
    checkName(name, rule, ['metadata', 'name'], report);
  }
  if (namespace === undefined) checkName(given, 'label', ['metadata', 'namespace'], report);
  return {
    name,
    namespace: namespace ?? given,
    labels: readTexts(raw?.labels, 'label', paths.labels, report),
    annotations: readTexts(raw?.annotations, 'annotation', paths.annotations, report),
  };
}

const paths = { labels: ['metadata', 'labels'], annotations: ['metadata', 'annotations'] };

type Texts = Readonly<Record<string, string>>;

const noTexts: Texts = {};

/** Null is the empty text here, as it is to Kubernetes: few mean that. */
export function readTexts(
  map: Readonly<Record<string, string | null>> | null | undefined,
  of: ArgumentsOf<'null-value'>['of'],
  path: FieldPath,
  report: Report,
): Texts {
  if (!map) return noTexts;
  if (hasNoNulls(map)) return map;
  const entries = Object.entries(map);
  for (const [name, value] of entries) if (value === null) report.add([...path, name], 'null-value', { of, name });
  return Object.fromEntries(entries.map(([key, value]) => [key, value ?? '']));
}

function hasNoNulls(map: Readonly<Record<string, string | null>>): map is Texts {
  for (const key in map) if (map[key] === null) return false;
  return true;
}
