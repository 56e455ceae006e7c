import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { CompileOptions } from '../../src/library/compile.ts';
import type { NamedText } from '../../src/library/index.ts';
import { loadFiles } from '../../src/input/files/load-files.ts';
import type { Fixture } from '../support/fixtures.ts';

/** The command of a fixture as options of the library, with the texts of its files; undefined if a file is missing. */
export function optionsOf({ args, folder }: Fixture): CompileOptions | undefined {
  const sources: string[] = [];
  const options: Record<string, unknown> = {};
  const words = args.slice(1).flatMap((word) => (/^--[\w-]+=/.test(word) ? word.split(/=(.*)/s, 2) : [word]));
  for (let i = 0; i < words.length; i++) {
    const flag = words[i] ?? '';
    const value = words[i + 1];
    const hasValue = value !== undefined && !value.startsWith('-');
    if (hasValue) i++;
    const name = flag.replace(/^--/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    if (flag === '-f') sources.push(value ?? '');
    else if (name === 'config' || name === 'hostAddresses') {
      if (!existsSync(join(folder, value ?? ''))) return undefined;
      options[name] = { name: value, text: readFileSync(join(folder, value ?? ''), 'utf8') };
    } else options[name] = hasValue ? value : true;
  }
  const { files, diagnostics } = loadFiles(
    sources.map((source) => join(folder, source)),
    undefined,
  );
  if (diagnostics.length > 0) return undefined;
  const manifests: NamedText[] = files.map(({ name, text }) => ({ name: relative(folder, name), text }));
  return { ...options, manifests };
}
