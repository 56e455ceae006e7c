import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolder } from './run-kpc.ts';

/**
 * A fenced block of a page. What comes after the language says how it is tried: "sh" is run, "sh status=1" ends with that
 * status, "sh node" runs in the test kernel, "sh packages" in npm run test:packages, "sh install" is for a fresh machine.
 */
export interface Block {
  readonly language: string;
  readonly words: readonly string[];
  readonly text: string;
  /** Where its text is in the page. */
  readonly start: number;
  readonly end: number;
}

/** A block of commands, and the block of what they print, where one follows with nothing in between. */
export interface Example {
  readonly commands: Block;
  readonly shown: Block | undefined;
}

/** The pages that people read, by their paths in the project. */
export function pagePaths(): readonly string[] {
  const docs = ['docs', 'docs/zh-CN'].flatMap((folder) =>
    readdirSync(join(projectFolder, folder))
      .filter((name) => name.endsWith('.md'))
      .toSorted()
      .map((name) => `${folder}/${name}`),
  );
  return ['README.md', 'README.zh-CN.md', 'CONTRIBUTING.md', ...docs];
}

/** The first screens of the site, whose links are checked where it is built. */
export const homePaths = ['site/home/en.md', 'site/home/zh-CN.md'];

export function readPage(path: string): string {
  return readFileSync(join(projectFolder, path), 'utf8');
}

/** The fenced blocks of a page, in order. */
export function readBlocks(page: string): readonly Block[] {
  return [...page.matchAll(/^```([a-z]+)([^\n]*)\n(.*?)^```$/gms)].map((found) => {
    const [whole, language = '', words = '', text = ''] = found;
    const end = found.index + whole.length - 3;
    return { language, words: words.split(' ').filter(Boolean), text, start: end - text.length, end };
  });
}

/** The blocks of commands or programs in one of these languages, each with what it prints. */
export function readExamples(page: string, languages: readonly string[] = ['sh']): readonly Example[] {
  const blocks = readBlocks(page);
  return blocks.flatMap((commands, i) => {
    if (!languages.includes(commands.language)) return [];
    const next = blocks[i + 1];
    const follows = next?.language === 'text' && page.slice(commands.end, next.start) === '```\n\n```text\n';
    return [{ commands, shown: follows ? next : undefined }];
  });
}

/** The page with what the commands have printed in the place of what it shows. */
export function writeOutputs(page: string, examples: readonly Example[], printed: readonly string[]): string {
  let written = '';
  let copied = 0;
  for (const [i, { shown }] of examples.entries()) {
    if (shown === undefined) continue;
    written += page.slice(copied, shown.start) + (printed[i] ?? '');
    copied = shown.end;
  }
  return written + page.slice(copied);
}
