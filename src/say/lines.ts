import type { ChangeKind } from '../ask/changes/kernel-change.ts';
import { cutLines } from '../base/printable.ts';

/** A line for people. Each format shows its role in its own way, such as a colour, a sign or a heading. */
export interface Line {
  readonly role: 'heading' | 'plain' | 'dim' | 'good' | 'bad' | 'command' | 'summary' | ChangeKind | EffectRole;
  /** The indentation. */
  readonly depth: number;
  readonly text: string;
  /** What the text is about. */
  readonly name?: string;
}

/** What a difference means to clients. */
type EffectRole = 'worse' | 'better' | 'other';

/** Lines that belong together. A blank line precedes the next block, and a heading within one. */
export type Block = readonly Line[];

/** A line for each text that there is. */
export function lines(role: Line['role'], depth: number, ...texts: readonly (string | false | undefined)[]): Block {
  return texts.flatMap((text) => (text ? [{ role, depth, text }] : []));
}

/** The first lines, and a count of the rest. `hint`: how to see them. */
export function cutBlock(block: Block, limit: number, depth: number, hint = ''): Block {
  return cutLines(block, limit, (words) => ({ role: 'dim', depth, text: `… ${words}${hint}` }));
}

/** A list under its title, cut; nothing if it is empty. */
export function section(title: string, items: Block, limit: number): Block {
  return items.length === 0 ? [] : [...lines('heading', 0, title), ...cutBlock(items, limit, 1)];
}
