/** A value as it is written: offsets count from the start of the text that was parsed. */
export type YamlNode = ScalarNode | SequenceNode | MappingNode | AliasNode;

export interface ScalarNode {
  readonly kind: 'scalar';
  readonly offset: number;
  readonly value: string;
  /** '' where there is none. */
  readonly tag: string;
  /** Whether the value says what it is, as plain scalars do without a tag. */
  readonly isImplicit: boolean;
  /** Whether nothing is written: null. */
  readonly isEmpty: boolean;
}

export interface SequenceNode {
  readonly kind: 'sequence';
  readonly offset: number;
  readonly items: YamlNode[];
}

export interface MappingNode {
  readonly kind: 'mapping';
  readonly offset: number;
  readonly pairs: YamlPair[];
}

interface YamlPair {
  readonly key: YamlNode;
  readonly value: YamlNode;
}

export interface AliasNode {
  readonly kind: 'alias';
  readonly offset: number;
  /** What the name stood for where the alias is written. It may hold the alias. */
  readonly target: ScalarNode | SequenceNode | MappingNode;
}

const mergeTag = 'tag:yaml.org,2002:merge';

/** Whether a key is "<<", and merges what its value holds. In quotes it is a key like any other. */
export function isMergeKey(key: YamlNode): boolean {
  return key.kind === 'scalar' && key.value === '<<' && (key.isImplicit || key.tag === mergeTag);
}
