import { row, byProblem, type None, type Cited, type Texts, type Numbers, type Lists, type Severity } from './rows.ts';
import type { Found } from './fields.ts';

export type Flag = Texts<'flag'>;

/** `command`: whose flags these are; undefined for those of all commands. */
export interface UnknownFlag {
  readonly name: string;
  readonly command?: string | undefined;
  readonly meant?: string | undefined;
}

export interface NotShown {
  /** The severity of the omitted messages. */
  readonly severity: Severity;
  readonly count: number;
  /** Their code, if all are of one code and file. */
  readonly of?: string | undefined;
}

/** `near`: names spelled like it. */
export interface Unknown {
  readonly name: string;
  readonly near: readonly string[];
}

export const commandLineFindings = {
  'bad-expectation': byProblem<{
    nothing: None;
    missing: { readonly field: 'from' | 'to' | 'expect' | 'inputs' };
    empty: { readonly field: 'mode' | 'release' | 'node' | 'nodes' };
    rivals: None;
    /** `known`: the words that `source` accepts besides addresses. */
    'unknown-source': Texts<'value'> & Lists<'known'>;
    'unknown-verdict': Texts<'value'> & Lists<'known'> & { readonly near?: string | undefined };
    'idle-source': None;
    'no-endpoints': None;
    /** Another mode, release or node than the input's, which is `known` if the input shows it. */
    'other-input': Texts<'field' | 'kind'> & { readonly known?: string | undefined };
    /** The library reads no files. */
    'no-file': Texts<'field' | 'option'>;
    refused: Texts<'field'> & { readonly error: Cited };
    'not-tests': Lists<'fields'>;
  }>('error'),
  'bad-kpc-yaml': byProblem<{
    'link-outside': None;
    'several-documents': None;
    'no-mapping': Texts<'of'> & { readonly found: Found };
    'unknown-flag': UnknownFlag;
    value: Flag & { readonly found: Found; readonly expected: 'boolean' | 'list' | 'one' | 'ignores' };
    // An entry of a list: "ignore[0]".
    lacks: Texts<'entry' | 'field'>;
    'unknown-field': Texts<'entry' | 'name'> & { readonly meant?: string | undefined };
    'unknown-code': Texts<'code'> & { readonly meant?: string | undefined };
    rivals: Flag & Texts<'other'>;
    'replaces-outside': Flag;
    'replaces-git': Flag;
    'reads-outside': Flag;
    refused: Flag & Texts<'reason'>;
  }>('error'),
  'not-shown': row<NotShown>({ among: ['error', 'warning', 'note'], weigh: ({ severity }: NotShown) => severity }),
  // The question is valid, but nothing has this name or address.
  'not-found': byProblem<{
    'nothing-found': Texts<'reason'> & { readonly help?: string | undefined };
    'no-sender': Unknown & { readonly from: string; readonly kinds: readonly string[] };
    'no-such-port': Texts<'to'>;
    'no-such': Unknown & { readonly kind: string; readonly files?: string };
    'no-port': Texts<'service' | 'port'> & Lists<'ports'>;
    // `hosts`: DNS names of the headless Service's endpoints.
    'no-host': Unknown & Texts<'service'> & Lists<'hosts'>;
    'no-ingress-of-host': Texts<'request'>;
  }>('error'),
  'bad-packet': byProblem<{
    'other-family': Texts<'from'>;
    'no-address': Texts<'text'>;
    'port-range': Texts<'to'>;
    unread: Texts<'what'> & Lists<'kinds'>;
    'no-endpoint': Unknown;
    'no-address-of-pod': Texts<'pod'> & { readonly family: 'ipv4' | 'ipv6' };
    'no-node-named': Numbers<'nodes'>;
    'no-address-for': Texts<'sender'>;
    'which-port': Texts<'to'> & Lists<'ports'> & { readonly example?: string };
    several: Texts<'kind' | 'name'> & Lists<'names'>;
    skipped: Texts<'service'> & { readonly why: 'headless' | 'external-name' | 'no-cluster-ip' | 'other-proxy' };
  }>('error'),
};
