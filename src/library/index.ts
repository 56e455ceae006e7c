/** The library: all of kpc's answers, as functions from texts to texts. It needs neither files nor a machine, so browsers can run it. */
export { version } from '../base/version.ts';
export { newestRelease, releases } from '../kube-proxy/releases.ts';
export * from './compile.ts';
export { open, type OpenedTexts, type OpenTextsOptions } from './open.ts';
export { diff, formatDiff, type DiffOptions, type FormatOptions } from './diff.ts';
export { describeServices, type DumpDescription } from './describe.ts';
export { trace, type Traced, type TraceOptions, type TraceResult } from './trace.ts';
export { testPackets, type PacketTestResult, type TestOptions, type TestResult } from './test.ts';
export * from './comparisons.ts';
export { lint, type Linted, type LintOptions, type LintResult } from './lint.ts';
export type { InputOptions } from './inputs.ts';
export type { ManifestsOfNodes, PacketInput } from './open.ts';
export type { TraceQuestion } from '../say/trace-answer.ts';
export type { NamedText, Texts } from './inputs.ts';
export type { ServiceSummary } from '../say/describe/table.ts';
export type { Manifest } from '../bundle/manifest.ts';
export type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../snapshot/snapshot.ts';
export type { KernelState } from '../kernel/state.ts';
export type {
  ChangeJson as KernelChange,
  DifferenceJson as Difference,
  ServicePortDifference,
} from '../say/differences.ts';
export type { SaidFinding as Finding } from '../say/words/said.ts';
