// A Service's file in a golden has sections. A section holds one tool's lines, or data with one value on each line.
import { assumedLines } from '#checks';
import { parseChecked, type Check, type CheckedValue } from '../base/json/check.ts';
import type { ServiceInfo } from '../cluster/model.ts';
import { fullName } from '../cluster/objects.ts';
import type { BundleFiles } from './make-bundle.ts';

/** Fields that determine endpoints and are not the defaults. Older goldens lack this section, and `unplaced` in workloads. */
export const sourcesSection = 'sources.json';
export const assignedSection = 'assigned.json';
/** The section for assumed workloads. Each workload has a line. */
export const assumedSection = 'assumed.json';

export type Sections = Iterable<readonly [name: string, text: string]>;

/** Returns the name of a Service's file. Namespaces and Services have no dot in their names, so each file's name is unique. */
export function goldenServiceFile(namespace: string, name: string): string {
  return `${namespace}.${name}.txt`;
}

export function formatLines(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

export function formatSections(sections: Sections): string {
  return [...sections]
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `==> ${name} <==\n${text}`)
    .join('\n');
}

export function parseSections(text: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>();
  for (const part of text.split(/\n(?===> )/)) {
    const [, name, body] = /^==> (\S+) <==\n([^]*)$/.exec(part) ?? [];
    if (name !== undefined && body !== undefined) sections.set(name, body);
  }
  return sections;
}

export function readSectionLines<T>(
  sections: ReadonlyMap<string, string>,
  name: string,
  check: Check<readonly T[]>,
): CheckedValue<readonly T[]> {
  const lines = (sections.get(name) ?? '').split('\n').filter((line) => line !== '');
  return parseChecked(check, `[${lines.join(',')}]`, name);
}

/** Reports whether a Service's file has the same content as a freshly compiled one. An older kpc may have written the file. */
export function isSameServiceFile(present: string, fresh: string): boolean {
  return present === fresh || (!parseSections(present).has(sourcesSection) && present === withoutNews(fresh));
}

function withoutNews(fresh: string): string {
  const sections = new Map(parseSections(fresh));
  sections.delete(sourcesSection);
  const assumed = readSectionLines(sections, assumedSection, assumedLines);
  if ('wrong' in assumed) return fresh;
  const older = assumed.value.map((workload) => ({ ...workload, unplaced: undefined }));
  return formatSections(sections.set(assumedSection, formatLines(older)));
}

/** Returns the Services ("namespace/name") whose sources of endpoints the files do not record. A bundle never records these. */
export function lackingSources(files: BundleFiles, services: readonly ServiceInfo[]): ReadonlySet<string> {
  const lacking = services.filter(
    ({ namespace, name }) => !parseSections(files.get(goldenServiceFile(namespace, name)) ?? '').has(sourcesSection),
  );
  return new Set(lacking.map(fullName));
}
