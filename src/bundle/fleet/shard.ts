import { hashBinary } from '#hash';

export interface Shard {
  readonly index: number;
  readonly count: number;
}

/** Reads "I/N", where I is from 0 to N-1. Undefined for any other text. */
export function parseShard(text: string): Shard | undefined {
  const match = /^(\d{1,6})\/(\d{1,6})$/.exec(text);
  if (!match) return undefined;
  const shard = { index: Number(match[1]), count: Number(match[2]) };
  return shard.index < shard.count ? shard : undefined;
}

/**
 * Reports whether the node is in the shard. This depends only on the node's name and N, so a new node moves no other node to another shard.
 */
export function isInShard(node: string, { index, count }: Shard): boolean {
  const digest = hashBinary(node);
  let number = 0;
  for (let i = 0; i < 4; i++) number = number * 256 + digest.charCodeAt(i);
  return number % count === index;
}
