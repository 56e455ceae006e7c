import type { YamlProblem } from '../../diagnostics/yaml-problem.ts';
import { maxDepth, refuse, Refusal, tooDeep } from '../syntax-fault.ts';
import type { AliasNode, MappingNode, ScalarNode, SequenceNode, YamlNode } from './nodes.ts';
import { Scanner } from './scanner.ts';
import type { Token } from './tokens.ts';

/** What a document holds; `root` is undefined for one without content. */
export interface Composed {
  readonly root: YamlNode | undefined;
  /** All that are written, in the order of the text. */
  readonly mappings: readonly MappingNode[];
}

/** Reads the one document of a text that ends with a line feed. Throws a Refusal. */
export function compose(text: string): Composed {
  return new Composer(text).composeDocument();
}

type TokenKind = Token['kind'];

const contentless: ReadonlySet<TokenKind> = new Set([
  'version',
  'tag-prefix',
  'document-start',
  'document-end',
  'text-end',
]);

/** The anchor and the tag before a node. */
interface Properties {
  readonly anchor: string | undefined;
  readonly tag: string;
}

/** The grammar of go-yaml v2, which is that of libyaml, rule by rule. */
class Composer {
  readonly #scanner: Scanner;
  readonly #tagPrefixes = new Map<string, string>();
  /** What each name stands for so far: an alias means the last one before it. */
  readonly #anchors = new Map<string, AliasNode['target']>();
  readonly #mappings: MappingNode[] = [];
  #depth = 0;

  constructor(text: string) {
    this.#scanner = new Scanner(text);
  }

  composeDocument(): Composed {
    const { kind } = this.#scanner.peek();
    let root: YamlNode | undefined;
    if (kind === 'version' || kind === 'tag-prefix' || kind === 'document-start') {
      this.#readDirectives();
      this.#expect('document-start', { problem: 'no-document-start' });
      if (!contentless.has(this.#scanner.peek().kind)) root = this.#readNode('block');
    } else if (kind !== 'text-end') {
      this.#addDefaultPrefixes();
      root = this.#readNode('block');
    }
    this.#readEnd();
    return { root, mappings: this.#mappings };
  }

  #readDirectives(): void {
    let hasVersion = false;
    for (let token = this.#scanner.peek(); ; token = this.#scanner.peek()) {
      if (token.kind === 'version') {
        if (hasVersion) refuse(token.start, { problem: 'two-versions' });
        if (!/^0?1\.0?1$/.test(token.version)) {
          refuse(token.start, { problem: 'other-version', version: token.version });
        }
        hasVersion = true;
      } else if (token.kind === 'tag-prefix') {
        if (this.#tagPrefixes.has(token.handle))
          refuse(token.start, { problem: 'duplicate-tag-prefix', handle: token.handle });
        this.#tagPrefixes.set(token.handle, token.prefix);
      } else {
        break;
      }
      this.#scanner.take();
    }
    this.#addDefaultPrefixes();
  }

  #addDefaultPrefixes(): void {
    if (!this.#tagPrefixes.has('!')) this.#tagPrefixes.set('!', '!');
    if (!this.#tagPrefixes.has('!!')) this.#tagPrefixes.set('!!', 'tag:yaml.org,2002:');
  }

  /** kubectl reads nothing of what comes after the end of a document, and says nothing of it. */
  #readEnd(): void {
    const { start } = this.#scanner.peek();
    try {
      while (this.#took('document-end'));
      if (this.#at('text-end')) return;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    refuse(start, { problem: 'document-ended' });
  }

  #expect(kind: TokenKind, otherwise: YamlProblem): void {
    const token = this.#scanner.peek();
    if (token.kind !== kind) refuse(token.start, otherwise);
    this.#scanner.take();
  }

  #at(...kinds: readonly TokenKind[]): boolean {
    return kinds.includes(this.#scanner.peek().kind);
  }

  /** Moves over a token of that kind, if it is the next one. */
  #took(kind: TokenKind): boolean {
    if (this.#scanner.peek().kind !== kind) return false;
    this.#scanner.take();
    return true;
  }

  /** A node of a flow collection, of a block, or of a block mapping, where a list need not be indented further. */
  #readNode(place: 'flow' | 'block' | 'block-mapping'): YamlNode {
    const first = this.#scanner.peek();
    if (first.kind === 'alias') return this.#readAlias(first);
    const properties = this.#readProperties();
    const token = this.#scanner.peek();
    switch (token.kind) {
      case 'scalar':
        this.#scanner.take();
        return this.#makeScalar(token, properties);
      case 'flow-sequence-start':
        return this.#readSequence(token, properties, () => this.#readFlowItems());
      case 'flow-mapping-start':
        return this.#readMapping(token, properties, (mapping) => this.#readFlowPairs(mapping));
      case 'block-entry':
        if (place !== 'block-mapping') break;
        return this.#readUnindentedSequence(token, properties);
      case 'block-sequence-start':
        if (place === 'flow') break;
        return this.#readSequence(token, properties, () => this.#readBlockItems());
      case 'block-mapping-start':
        if (place === 'flow') break;
        return this.#readMapping(token, properties, (mapping) => this.#readBlockPairs(mapping));
    }
    if (properties.anchor === undefined && properties.tag === '') {
      refuse(token.start, { problem: token.kind === 'text-end' ? 'document-end' : 'no-value' });
    }
    return this.#keep(properties, {
      ...emptyScalar(first.start),
      tag: properties.tag,
      isImplicit: properties.tag === '',
    });
  }

  #readAlias({ name, start }: Token & { readonly kind: 'alias' | 'anchor' }): AliasNode {
    this.#scanner.take();
    const target = this.#anchors.get(name);
    if (!target) refuse(start, { problem: 'unknown-anchor', name });
    return { kind: 'alias', offset: start, target };
  }

  /** An anchor and a tag, in either order. */
  #readProperties(): Properties {
    let anchor: string | undefined;
    let tag: string | undefined;
    for (let token = this.#scanner.peek(); ; token = this.#scanner.peek()) {
      if (token.kind === 'anchor' && anchor === undefined) anchor = token.name;
      else if (token.kind === 'tag' && tag === undefined) tag = this.#resolveTag(token);
      else return { anchor, tag: tag ?? '' };
      this.#scanner.take();
    }
  }

  #resolveTag({ handle, suffix, start }: Token & { readonly kind: 'tag' }): string {
    if (handle === '') return suffix;
    const prefix = this.#tagPrefixes.get(handle);
    if (prefix === undefined) refuse(start, { problem: 'unknown-tag-prefix', handle });
    return prefix + suffix;
  }

  #keep<Target extends AliasNode['target']>({ anchor }: Properties, node: Target): Target {
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    return node;
  }

  #makeScalar({ value, isPlain, start }: Token & { readonly kind: 'scalar' }, properties: Properties): ScalarNode {
    const { tag } = properties;
    const isImplicit = tag === '!' || (tag === '' && isPlain);
    return this.#keep(properties, { kind: 'scalar', offset: start, value, tag, isImplicit, isEmpty: false });
  }

  #readSequence({ start }: Token, properties: Properties, read: () => readonly YamlNode[]): SequenceNode {
    // An alias inside may mean this sequence, so it is known before it is read.
    const node: SequenceNode = this.#keep(properties, { kind: 'sequence', offset: start, items: [] });
    this.#scanner.take();
    this.#enter();
    for (const item of read()) node.items.push(item);
    this.#depth--;
    return node;
  }

  #readMapping({ start }: Token, properties: Properties, read: (mapping: MappingNode) => void): MappingNode {
    const node: MappingNode = this.#keep(properties, { kind: 'mapping', offset: start, pairs: [] });
    this.#mappings.push(node);
    this.#scanner.take();
    this.#enter();
    read(node);
    this.#depth--;
    return node;
  }

  #enter(): void {
    if (++this.#depth > maxDepth) throw new Refusal(tooDeep);
  }

  #readBlockItems(): YamlNode[] {
    const items: YamlNode[] = [];
    for (let token = this.#scanner.peek(); token.kind === 'block-entry'; token = this.#scanner.peek()) {
      this.#scanner.take();
      const isEmpty = this.#at('block-entry', 'block-end');
      items.push(isEmpty ? emptyScalar(token.end) : this.#readNode('block'));
    }
    this.#expect('block-end', { problem: 'no-list-item' });
    return items;
  }

  /** A list whose dashes stand in the column of its key. */
  #readUnindentedSequence({ start }: Token, properties: Properties): SequenceNode {
    const node: SequenceNode = this.#keep(properties, { kind: 'sequence', offset: start, items: [] });
    this.#enter();
    for (let token = this.#scanner.peek(); token.kind === 'block-entry'; token = this.#scanner.peek()) {
      this.#scanner.take();
      const isEmpty = this.#at('block-entry', 'key', 'value', 'block-end');
      node.items.push(isEmpty ? emptyScalar(token.end) : this.#readNode('block'));
    }
    this.#depth--;
    return node;
  }

  #readBlockPairs({ pairs }: MappingNode): void {
    while (this.#at('key')) {
      const { end } = this.#scanner.peek();
      this.#scanner.take();
      const key = this.#at('key', 'value', 'block-end') ? emptyScalar(end) : this.#readNode('block-mapping');
      pairs.push({ key, value: this.#readBlockValue() });
    }
    this.#expect('block-end', { problem: 'no-key' });
  }

  #readBlockValue(): YamlNode {
    const { start, end } = this.#scanner.peek();
    if (!this.#took('value')) return emptyScalar(start);
    return this.#at('key', 'value', 'block-end') ? emptyScalar(end) : this.#readNode('block-mapping');
  }

  #readFlowItems(): YamlNode[] {
    const items: YamlNode[] = [];
    while (this.#hasFlowEntry(items.length, 'flow-sequence-end', ']')) {
      items.push(this.#at('key') ? this.#readFlowPairItem() : this.#readNode('flow'));
    }
    return items;
  }

  /** An item of a flow sequence that is a mapping of one pair without braces. */
  #readFlowPairItem(): MappingNode {
    const { start } = this.#scanner.peek();
    const mapping: MappingNode = { kind: 'mapping', offset: start, pairs: [] };
    this.#mappings.push(mapping);
    this.#scanner.take();
    const isEmpty = this.#at('value', 'flow-entry', 'flow-sequence-end');
    // libyaml passes whatever comes in place of an empty key: a comma, too.
    const { end } = this.#scanner.peek();
    if (isEmpty) this.#scanner.take();
    const key = isEmpty ? emptyScalar(end) : this.#readNode('flow');
    mapping.pairs.push({ key, value: this.#readFlowValue('flow-sequence-end') });
    return mapping;
  }

  #readFlowPairs({ pairs }: MappingNode): void {
    while (this.#hasFlowEntry(pairs.length, 'flow-mapping-end', '}')) {
      if (!this.#at('key')) {
        const key = this.#readNode('flow');
        pairs.push({ key, value: emptyScalar(this.#scanner.peek().start) });
        continue;
      }
      this.#scanner.take();
      const isEmpty = this.#at('value', 'flow-entry', 'flow-mapping-end');
      const key = isEmpty ? emptyScalar(this.#scanner.peek().start) : this.#readNode('flow');
      pairs.push({ key, value: this.#readFlowValue('flow-mapping-end') });
    }
  }

  #readFlowValue(close: TokenKind): YamlNode {
    if (this.#took('value') && !this.#at('flow-entry', close)) return this.#readNode('flow');
    return emptyScalar(this.#scanner.peek().start);
  }

  /** Whether another entry comes, after its comma, and not the end, which is passed. */
  #hasFlowEntry(before: number, close: TokenKind, sign: ']' | '}'): boolean {
    if (before > 0 && !this.#at(close)) this.#expect('flow-entry', { problem: 'no-comma', sign });
    return !this.#took(close);
  }
}

function emptyScalar(offset: number): ScalarNode {
  return { kind: 'scalar', offset, value: '', tag: '', isImplicit: true, isEmpty: true };
}
