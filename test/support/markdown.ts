import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolder } from './run-kpc.ts';

/**
 * A fenced block in a page. Words after the language say how it is tested: "sh" is run, "sh status=1" must exit with this status, "sh node"
 * runs in the test kernel, "sh packages" in npm run test:packages, and "sh install" needs a fresh machine.
 */
export interface Block {
  readonly language: string;
  readonly words: readonly string[];
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** A block of commands, and the block of their output if it follows directly. */
export interface Example {
  readonly commands: Block;
  readonly shown: Block | undefined;
}

export function pagePaths(): readonly string[] {
  const docs = ['docs', 'docs/zh-CN'].flatMap((folder) =>
    readdirSync(join(projectFolder, folder))
      .filter((name) => name.endsWith('.md'))
      .toSorted()
      .map((name) => `${folder}/${name}`),
  );
  return ['README.md', 'README.zh-CN.md', 'CONTRIBUTING.md', ...docs];
}

/** The site's home pages, whose links are checked where the site is built. */
export const homePaths = ['site/home/en.md', 'site/home/zh-CN.md'];

export function readPage(path: string): string {
  return readFileSync(join(projectFolder, path), 'utf8');
}

export function readBlocks(page: string): readonly Block[] {
  return [...page.matchAll(/^```([a-z]+)([^\n]*)\n(.*?)^```$/gms)].map((found) => {
    const [whole, language = '', words = '', text = ''] = found;
    const end = found.index + whole.length - 3;
    return { language, words: words.split(' ').filter(Boolean), text, start: end - text.length, end };
  });
}

/** Returns the blocks in these languages, each with its output. */
export function readExamples(page: string, languages: readonly string[] = ['sh']): readonly Example[] {
  const blocks = readBlocks(page);
  return blocks.flatMap((commands, i) => {
    if (!languages.includes(commands.language)) return [];
    const next = blocks[i + 1];
    const follows = next?.language === 'text' && page.slice(commands.end, next.start) === '```\n\n```text\n';
    return [{ commands, shown: follows ? next : undefined }];
  });
}

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
