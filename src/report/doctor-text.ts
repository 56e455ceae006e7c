import { Chalk } from 'chalk';
import type { Finding } from '../apply/doctor/finding.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { printable } from '../base/printable.ts';

/** What kpc-apply doctor found, for people. */
export function formatFindings(findings: readonly Finding[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  const lines = findings.flatMap(({ severity, text, advice, mode }, i) => [
    ...(mode === undefined || mode === findings[i - 1]?.mode ? [] : ['', chalk.bold(`For ${modeFacts[mode].title}:`)]),
    `${paint[severity](severity.padEnd(7))} ${printable(text)}`,
    ...(advice === undefined ? [] : [`        ${chalk.dim(printable(advice))}`]),
  ]);
  return `${lines.join('\n')}\n`;
}
