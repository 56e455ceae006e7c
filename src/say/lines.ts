import type { ChangeKind } from '../ask/changes/kernel-change.ts';
import { cutLines } from './words/rows.ts';

/** A line for people. Each format shows the line's role in its own way, for example by a colour, a sign or a heading. */
export interface Line {
  readonly role: 'heading' | 'plain' | 'dim' | 'good' | 'bad' | 'command' | 'summary' | ChangeKind | EffectRole;
  readonly depth: number;
  readonly text: string;
  /** The object that the text is about. */
  readonly name?: string;
}

/** Whether a difference is worse or better for clients, or neither. */
type EffectRole = 'worse' | 'better' | 'other';

/** Lines that belong together. A blank line precedes the next block, and each heading inside a block. */
export type Block = readonly Line[];

/** Returns a line for each text, leaving out missing texts. */
export function lines(role: Line['role'], depth: number, ...texts: readonly (string | false | undefined)[]): Block {
  return texts.flatMap((text) => (text ? [{ role, depth, text }] : []));
}

/** Cuts a block to its first lines and adds a line that counts the others. `hint` tells how to see the others. */
export function cutBlock(block: Block, limit: number, depth: number, hint = ''): Block {
  return cutLines(block, limit, (words) => ({ role: 'dim', depth, text: `… ${words}${hint}` }));
}

/** Returns a list under its title, cut at the limit. Returns an empty block if the list is empty. */
export function section(title: string, items: Block, limit: number): Block {
  return items.length === 0 ? [] : [...lines('heading', 0, title), ...cutBlock(items, limit, 1)];
}
