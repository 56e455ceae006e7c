import {
  allBits,
  type MarkChange,
  type MarkHolder,
  type OtherAction,
  type PlainAction,
  parseNumber32,
  parsePort,
  parseTarget,
  readMarkMask,
} from '../ports-and-marks.ts';
import type { Chain } from './iptables.ts';
import type { Selector, SetWrite } from '../nftables/table.ts';

export type RuleAction = PlainAction | OtherAction | (SetWrite & { readonly key: Selector });

/** Targets that change neither the rules that a first packet meets nor its route or receiver. */
const idleTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CONNSECMARK DSCP ECN HL IDLETIMER LED LOG NFLOG RATEEST SECMARK TCPMSS TCPOPTSTRIP TEE ' +
    'TOS TRACE TTL ULOG'
  ).split(' '),
);

/** NAT options that say how to choose an address or port from the range. */
const drawingOptions: ReadonlySet<string> = new Set(['--random', '--random-fully', '--persistent']);

/** Returns the action of a target of kind `other`; undefined if the target does not change packets. */
export function actionOfWords([name = '', ...words]: readonly string[]): RuleAction | undefined {
  const unread: RuleAction = { kind: 'unknown', text: [name, ...words].join(' ') };
  // The kernel does not forward a packet without hops left.
  if ((name === 'TTL' || name === 'HL') && words[0]?.endsWith('-set') && Number(words[1]) <= 1) return unread;
  if (idleTargets.has(name)) return undefined;
  const [option, value = '', ...more] = words.filter((word) => !drawingOptions.has(word));
  const isOne = option !== undefined && more.length === 0;
  switch (name) {
    case 'NOTRACK':
      return { kind: 'notrack' };
    case 'CT':
      // A helper or timeout does not affect this connection's packets.
      return option === '--notrack' ? { kind: 'notrack' } : readZoneAction(words);
    case 'SET': {
      const [write, set = '', directions = ''] = words;
      if (write === '--map-set') return undefined;
      const operation = write === '--add-set' ? 'add' : write === '--del-set' ? 'delete' : undefined;
      if (operation === undefined || directions === '') return unread;
      return {
        kind: 'write-set',
        operation,
        set,
        key: directions.split(',').map((direction) => ({ name: direction })),
      };
    }
    case 'MASQUERADE':
      return { kind: 'masquerade' };
    case 'SNAT': {
      const address = isOne && option === '--to-source' ? parseTargetAddress(value) : undefined;
      return address ? { kind: 'snat', address } : unread;
    }
    case 'DNAT': {
      const target = isOne && option === '--to-destination' ? parseTarget(value) : undefined;
      return target ? { kind: 'dnat', target } : unread;
    }
    case 'REDIRECT': {
      const port = parsePort(value);
      if (option === undefined) return { kind: 'redirect', port: undefined };
      return isOne && option === '--to-ports' && port !== undefined ? { kind: 'redirect', port } : unread;
    }
    case 'MARK':
      return readMarkAction('packet', words) ?? unread;
    case 'CONNMARK':
      return readMarkAction('connection', words) ?? unread;
    default:
      return unread;
  }
}

function readZoneAction(words: readonly string[]): RuleAction | undefined {
  const at = words.findIndex((word) => /^--zone(?:-orig|-reply)?$/.test(word));
  const zone = parseNumber32(words[at + 1] ?? '');
  if (at < 0) return undefined;
  if (zone === undefined) return { kind: 'unknown', text: `CT ${words.join(' ')}` };
  const direction = words[at] === '--zone' ? undefined : words[at] === '--zone-orig' ? 'original' : 'reply';
  return { kind: 'zone', zone, direction };
}

/** Returns the connection tracking zones that rules in table raw assign. */
export function zonesSetBy(raw: ReadonlyMap<string, Chain> | undefined): readonly number[] {
  const args = [...(raw?.values() ?? [])].flatMap(({ rules }) => rules.flatMap((rule) => rule.args));
  return args.flatMap((arg) => {
    const action = arg.kind === 'jump' && arg.target.kind === 'other' ? actionOfWords(arg.target.words) : undefined;
    return action?.kind === 'zone' ? [action.zone] : [];
  });
}

function parseTargetAddress(text: string) {
  return parseTarget(text.replace(/(:\d+)-\d+$/, '$1'))?.address;
}

/** Reads options of MARK and CONNMARK into the formula of MarkChange (xt_mark.c, xt_connmark.c). */
function readMarkAction(of: MarkHolder, [option = '', text = '', ...more]: readonly string[]): RuleAction | undefined {
  const change =
    option.endsWith('-mark') && /^--(?:save|restore)-/.test(option)
      ? copyOf(of, option, [text, ...more])
      : more.length === 0
        ? computeMark(option, text)
        : undefined;
  if (!change) return undefined;
  return { kind: 'change-mark', of: option === '--restore-mark' ? 'packet' : of, change };
}

function computeMark(option: string, text: string): MarkChange | undefined {
  const mark = readMarkMask(text);
  if (!mark) return undefined;
  const { value, mask } = mark;
  switch (option) {
    case '--set-xmark':
      return { stays: ~mask >>> 0, flip: value };
    case '--set-mark':
      return { stays: ~(mask | value) >>> 0, flip: value };
    case '--and-mark':
      return { stays: value, flip: 0 };
    case '--or-mark':
      return { stays: ~value >>> 0, flip: value };
    case '--xor-mark':
      return { stays: allBits, flip: value };
    default:
      return undefined;
  }
}

function copyOf(of: MarkHolder, option: string, words: readonly string[]): MarkChange | undefined {
  if (of !== 'connection') return undefined;
  const options = words.filter((word) => word !== '');
  const read = (name: string): number | undefined => {
    const at = options.findIndex((word) => word === name || word === '--mask');
    return at < 0 ? allBits : parseNumber32(options[at + 1] ?? '');
  };
  const [nfmask, ctmask] = [read('--nfmask'), read('--ctmask')];
  if (nfmask === undefined || ctmask === undefined) return undefined;
  return option === '--save-mark'
    ? { stays: ~ctmask >>> 0, start: { from: 'packet', keep: nfmask }, flip: 0 }
    : { stays: ~nfmask >>> 0, start: { from: 'connection', keep: ctmask }, flip: 0 };
}
