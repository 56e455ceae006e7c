// Writes the declarations of a library: only those that its entries lead to.
// @ts-check
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/**
 * Matches comments on functions and values, which are left out. Comments on types and their fields are for the library's users, and stay.
 */
const ofFunction = /\/\*\*(?:(?!\*\/)[^])*\*\/\n(?=export declare (?:function|const) (\w+))/g;

/**
 * @param {string} root the folder with tsconfig.types.json
 * @param {readonly string[]} entries relative to root
 * @param {string} out a folder that is replaced
 */
export function writeTypes(root, entries, out) {
  const all = mkdtempSync(join(tmpdir(), 'kpc-types-'));
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    execFileSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.types.json'), '--outDir', all], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const published = entries.map((entry) => readFileSync(join(root, entry), 'utf8')).join('');
    const declaredBy = entries.map((entry) => join(all, relative('src', entry).replace(/\.ts$/, '.d.ts')));
    const homes = new Set(declaredBy.map((path) => dirname(path)));
    const reached = new Set(declaredBy);
    rmSync(out, { recursive: true, force: true });
    for (const path of reached) {
      const declared = readFileSync(path, 'utf8').replaceAll(ofFunction, (comment, name) =>
        homes.has(dirname(path)) || published.includes(name) ? comment : '',
      );
      // Rename the imports, because not every compiler can import declarations as .ts.
      const text = declared.replaceAll(/(from |import\()(['"])(\.[^'"]+)\.ts\2/g, (_, word, quote, to) => {
        reached.add(join(dirname(path), `${to}.d.ts`));
        return `${word}${quote}${to}.js${quote}`;
      });
      const target = join(out, relative(all, path));
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
    }
  } finally {
    rmSync(all, { recursive: true, force: true });
  }
}
