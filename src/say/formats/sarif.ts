import { printableJson } from '../../base/printable.ts';
import { projectUrl, version } from '../../base/version.ts';
import { codes } from '#codes';
import { findingCodes, severitiesOf, type FindingCode } from '../../base/findings/codes.ts';
import type { Severity } from '../../base/findings/rows.ts';
import type { PathOf } from './github.ts';
import { helpWithTrace, type SaidFinding } from '../words/said.ts';

const levels: Readonly<Record<Severity, string>> = { error: 'error', warning: 'warning', note: 'note' };

/**
 * Formats findings as SARIF 2.1.0. Code scanning shows only results with a place, so a finding about the whole input is placed at the
 * input's first file. Ignored findings are left out, because GitHub does not read suppressions and would open an alert for each.
 * `properties` apply to all results.
 */
export function formatSarif(
  findings: readonly SaidFinding[],
  properties: Readonly<Record<string, string>> | undefined,
  files: readonly string[],
  pathOf: PathOf,
): string {
  const used = new Set(findings.map(({ code }) => code));
  const rules = findingCodes.filter((code) => used.has(code));
  const pageOf = new Map(findings.map(({ code, page }) => [code, page]));
  const driver = {
    name: 'kpc',
    version,
    informationUri: projectUrl,
    rules: rules.map((code) => sarifRule(code, pageOf.get(code))),
  };
  const run = {
    tool: { driver },
    columnKind: 'utf16CodeUnits',
    results: findings.map((finding) => resultOf(finding, rules, files[0], pathOf)),
    properties,
  };
  const log = { $schema: 'https://json.schemastore.org/sarif-2.1.0.json', version: '2.1.0', runs: [run] };
  return `${printableJson(JSON.stringify(log, undefined, 2))}\n`;
}

function sarifRule(code: FindingCode, helpUri: string | undefined) {
  const { meaning, why = meaning, reports = [] } = codes[code];
  const [worst = 'warning'] = severitiesOf(code);
  const links = reports.map((link) => `\n- <${link}>`).join('');
  const inFull = why === meaning ? `${meaning}.` : `${why}${links}`;
  const command = `kpc explain ${code}`;
  return {
    id: code,
    shortDescription: { text: meaning },
    fullDescription: { text: why },
    help: { text: `${why}\n${command}`, markdown: `${inFull}\n\n\`${command}\`` },
    helpUri,
    defaultConfiguration: { level: levels[worst] },
    properties: { tags: ['kubernetes', 'network'], 'problem.severity': worst === 'note' ? 'recommendation' : worst },
  };
}

function resultOf(finding: SaidFinding, rules: readonly FindingCode[], fallback: string | undefined, pathOf: PathOf) {
  const { code, severity, text, fingerprint, about, trace, place } = finding;
  const { file = fallback ?? '.', line = 1, column } = place ?? {};
  const help = helpWithTrace(finding);
  const region = { startLine: line, startColumn: column };
  const physicalLocation = { artifactLocation: artifactOf(pathOf(file)), region };
  const logicalLocations =
    about?.kind === 'service' ? [{ fullyQualifiedName: about.name, kind: 'resource' }] : undefined;
  return {
    ruleId: code,
    ruleIndex: rules.indexOf(code),
    level: levels[severity],
    message: { text: help === undefined ? text : `${text}\n${help}` },
    // GitHub's code scanning rejects the whole file if any result has no place.
    locations: [{ physicalLocation, logicalLocations }],
    partialFingerprints: { 'kpcFinding/v1': fingerprint },
    properties: trace && { trace: trace.command, verdict: trace.verdict },
  };
}

/** Returns a file's URI. A relative path is relative to the repository's root. Undefined for standard input, which is not a file. */
function artifactOf(file: string | undefined) {
  if (file === undefined) return { uri: 'stdin' };
  const [drive = ''] = /^[A-Za-z]:(?=\/)/.exec(file) ?? [];
  const uri = drive + file.slice(drive.length).split('/').map(encodeURIComponent).join('/');
  if (file.startsWith('/')) return { uri: `file://${uri}` };
  if (drive !== '') return { uri: `file:///${uri}` };
  return { uri: uri === '' ? '.' : uri, uriBaseId: '%SRCROOT%' };
}
