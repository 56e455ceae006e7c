// A Service's file in a golden has sections. Each holds one tool's lines, or data with one value per line.
import { assumedLines } from '#checks';
import { parseChecked, type Check, type CheckedValue } from '../base/json/check.ts';
import type { ServiceInfo } from '../cluster/model.ts';
import { fullName } from '../cluster/objects.ts';
import type { BundleFiles } from './make-bundle.ts';

/** The fields that endpoints are made from, if they are not as usual. Older goldens lack this section, and `unplaced` in workloads. */
export const sourcesSection = 'sources.json';
export const assignedSection = 'assigned.json';
/** One workload per line. */
export const assumedSection = 'assumed.json';

export type Sections = Iterable<readonly [name: string, text: string]>;

/** Names a Service's file. Neither name has a dot, so each Service has its own file, and none is node.txt. */
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

/** Reports whether a Service's file says the same as a fresh one. The file may be an older kpc's. */
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

/** Returns the Services ("namespace/name") for which the files record no sources of endpoints: a bundle's never do. */
export function lackingSources(files: BundleFiles, services: readonly ServiceInfo[]): ReadonlySet<string> {
  const lacking = services.filter(
    ({ namespace, name }) => !parseSections(files.get(goldenServiceFile(namespace, name)) ?? '').has(sourcesSection),
  );
  return new Set(lacking.map(fullName));
}
