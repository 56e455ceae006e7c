/** What a YAML text is made of, in the terms of libyaml, whose rules kubectl's parser follows. */
export type Token = { readonly start: number; readonly end: number } & (
  | {
      readonly kind:
        | 'document-start'
        | 'document-end'
        | 'text-end'
        | 'block-sequence-start'
        | 'block-mapping-start'
        | 'block-end'
        | 'flow-sequence-start'
        | 'flow-sequence-end'
        | 'flow-mapping-start'
        | 'flow-mapping-end'
        | 'block-entry'
        | 'flow-entry'
        | 'key'
        | 'value';
    }
  | { readonly kind: 'alias' | 'anchor'; readonly name: string }
  | { readonly kind: 'tag'; readonly handle: string; readonly suffix: string }
  | { readonly kind: 'scalar'; readonly value: string; readonly isPlain: boolean }
  | { readonly kind: 'version'; readonly version: string }
  | { readonly kind: 'tag-prefix'; readonly handle: string; readonly prefix: string }
);

/** The kinds of token that say nothing but that they are there. */
export type SignKind = Exclude<Token['kind'], 'alias' | 'anchor' | 'tag' | 'scalar' | 'version' | 'tag-prefix'>;
