import { shellWord } from '../../base/printable.ts';
import type { FolderForm } from '../../say/check-report.ts';

/** Flags of a check that mean nothing when the folder is written; true for those with a value. */
const left: ReadonlyMap<string, boolean> = new Map([
  ['--check', true],
  ['--output', true],
  ['-q', false],
  ['--quiet', false],
]);

/** The command that writes a folder again that --check compared: the same words, with --golden or -o in the place of --check. */
export function acceptCommand(
  argv: readonly string[],
  folder: string,
  form: FolderForm,
  adds: readonly string[] = [],
): string {
  const writes = [form === 'golden' ? '--golden' : '-o', folder, ...adds];
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const kept: string[] = [];
  let isWritten = false;
  for (let i = 0; i < end; i++) {
    const word = argv[i] ?? '';
    const [flag = ''] = word.split('=');
    const hasValue = left.get(flag);
    if (hasValue === undefined) {
      kept.push(word);
      continue;
    }
    if (hasValue && flag === word) i++;
    if (flag !== '--check') continue;
    kept.push(...writes);
    isWritten = true;
  }
  const words = isWritten ? kept : [...kept, ...writes];
  return ['kpc', ...words, ...argv.slice(end)].map(shellWord).join(' ');
}
