// Collects the licences of the packages in a program, because the licences must come with it.
// @ts-check
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Lists the npm packages that have any part in the output, sorted by name.
 *
 * @param {readonly import('esbuild').Metafile[]} metafiles
 * @param {string} [folder] whose node_modules they are in, such as "mcp/"
 * @returns {readonly string[]}
 */
export function bundledPackages(metafiles, folder = '') {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap((output) => Object.keys(output.inputs)),
  );
  const names = inputs
    .filter((path) => path.startsWith(`${folder}node_modules/`))
    .flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path.slice(folder.length))?.[1] ?? []);
  return [...new Set(names)].sort();
}

/**
 * Returns the text of a file with the packages' licences. Throws if a package has none.
 *
 * @param {string} root
 * @param {readonly string[]} packages
 */
export function licencesOf(root, packages) {
  const texts = packages.map((name) => {
    const folder = join(root, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no file with its licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  return `kpc holds parts of these packages.\n\n${texts.join(separator)}`;
}

export const separator = `\n${'-'.repeat(80)}\n\n`;
