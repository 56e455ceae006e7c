import { printableLines } from '../../base/printable.ts';
import type { Located } from '../../kernel/place.ts';

export interface TestCase {
  readonly name: string;
  readonly place?: Located | undefined;
  readonly failure?: { readonly title: string; readonly lines: readonly string[] } | undefined;
  /** Messages about a case that does not fail. */
  readonly output?: readonly string[];
}

/** `properties`: facts that apply to all of the cases. */
export function formatTestSuite(
  name: string,
  cases: readonly TestCase[],
  properties: Readonly<Record<string, string>> = {},
): string {
  const failures = cases.filter(({ failure }) => failure !== undefined).length;
  const attributes = `name=${quoteXml(name)} tests="${cases.length}" failures="${failures}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes}>`,
    `  <testsuite ${attributes}>`,
    ...formatProperties(properties),
    ...cases.map(formatTestCase),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function formatProperties(properties: Readonly<Record<string, string>>): readonly string[] {
  const lines = Object.entries(properties).map(
    ([name, value]) => `      <property name=${quoteXml(name)} value=${quoteXml(value)}/>`,
  );
  return lines.length === 0 ? [] : ['    <properties>', ...lines, '    </properties>'];
}

function formatTestCase({ name, place, failure, output = [] }: TestCase): string {
  const at = place?.line === undefined ? '' : ` file=${quoteXml(place.file)} line="${place.line}"`;
  const open = `    <testcase classname="kpc" name=${quoteXml(name)}${at}`;
  if (!failure && output.length === 0) return `${open}/>`;
  if (!failure) return `${open}>\n      <system-out>${output.map(escapeXml).join('\n')}</system-out>\n    </testcase>`;
  const text = failure.lines.map(escapeXml).join('\n');
  return `${open}>\n      <failure message=${quoteXml(failure.title)}>${text}</failure>\n    </testcase>`;
}

function quoteXml(text: string): string {
  return `"${escapeXml(text)}"`;
}

/** Escapes text for XML, and replaces control characters that XML forbids. */
export function escapeXml(text: string): string {
  const escaped = printableLines(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll('"', '&quot;');
}
