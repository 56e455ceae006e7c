import { mostForPrograms } from '../diagnostics/tally.ts';
import { pathWord } from '../base/printable.ts';
import type { Shaped } from '../base/json-shape.ts';
import { loadTexts } from '../snapshot/open/load-texts.ts';
import { diagnosticCodes, type DiagnosticCode } from '../diagnostics/codes.ts';
import { isError } from '../diagnostics/diagnostic.ts';
import { lintInputs } from '../lint/lint.ts';
import type { JsonDiagnostic } from '../report/json.ts';
import { lintJson } from '../report/lint.ts';
import { reportLint } from '../report/lint-report.ts';
import type { linted } from '../report/outputs/lint.ts';
import { shownOptions, textsOf } from './inputs.ts';
import { checkPacketOptions, type ManifestsOfNodes } from './scenes.ts';
import { listOf } from './texts.ts';
import { diagnosticsOf } from './words.ts';

/** Options of lint: the flags of `kpc lint`. It looks at all Nodes of the manifests, or at the one that `node` names. */
export interface LintOptions extends Omit<ManifestsOfNodes, 'allNodes'> {
  /** Codes whose findings are not reported; errors are, all the same. */
  readonly ignore?: readonly DiagnosticCode[] | undefined;
}

/** What `kpc lint --output json` prints. */
export type Linted = Shaped<typeof linted>;

/** What is wrong with the manifests. */
export interface LintResult {
  /** Whether there are no errors. */
  readonly passed: boolean;
  readonly report: Linted;
  /** Notes about the input. */
  readonly diagnostics: readonly JsonDiagnostic[];
}

/**
 * Checks manifests, on all nodes: errors and warnings, and Services that are valid and do not do what they seem to say.
 *
 * ```ts
 * import { lint } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 99999 }] } }' };
 * const { passed, report } = lint({ manifests });
 * console.log(passed, report.findings[0]?.code); // false bad-value
 * ```
 */
export function lint(options: LintOptions): LintResult {
  checkPacketOptions(options, ['ignore']);
  const { ignore = [], ...input } = options;
  const strange = ignore.find((code) => !diagnosticCodes.includes(code));
  if (strange !== undefined) throw new TypeError(`ignore: no finding has the code ${strange}`);
  const request = shownOptions(input);
  const assume = request.assume ?? 'by-default';
  const asked = { ...request, assume, traffic: true, unnamedMode: 'iptables', mostOfCode: mostForPrograms } as const;
  const loaded = loadTexts(textsOf(input, input.hostAddresses), asked);
  const named = { node: input.node, ipFamily: request.ipFamily };
  const result = lintInputs(
    loaded,
    named,
    ignore.map((code) => ({ code, by: 'ignore' })),
  );
  const files = listOf(input.manifests, 'manifests').map(({ name }) => name);
  const mode = result.namesMode ? [] : ['--proxy-mode', result.mode];
  const report = reportLint(result, ['kpc', 'trace', ...files.map(pathWord), ...mode]);
  const passed = !result.findings.some(({ diagnostic }) => isError(diagnostic));
  return { passed, report: lintJson(report), diagnostics: diagnosticsOf(result.notes) };
}
