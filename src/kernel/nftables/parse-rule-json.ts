import type { Family } from '../family.ts';
import type { Value, Verdict } from './element.ts';
import type { Expression, Field, Right, Selector, Target } from './expression.ts';
import { maskedComparison, rejectWith, type Comparison } from './parse-rule-text.ts';
import { comparedType, inOrder, readNumber, readTarget, readValue, type ValueType } from './read-value.ts';

/** Reads one expression of a rule as `nft -j` prints it. What kpc does not read is kept as its JSON. */
export function readExpression(json: unknown, family: Family): Expression {
  return readKnown(json, family) ?? { kind: 'unknown', form: 'json', text: JSON.stringify(json) };
}

function readKnown(json: unknown, family: Family): Expression | undefined {
  const verdict = readVerdict(json);
  if (verdict) return { kind: 'verdict', verdict };
  const [kind, body] = onlyEntry(json) ?? [];
  switch (kind) {
    case 'match':
      return readMatch(asObject(body));
    case 'vmap':
      return readVerdictMap(asObject(body));
    case 'dnat':
      return readDnat(asObject(body), family);
    case 'mangle':
      return readSetMark(asObject(body));
    case 'masquerade':
      return readMasquerade(body);
    case 'reject':
      return readReject(body, family);
    case 'set':
      return readWriteSet(asObject(body));
    case 'counter':
      // One without a name has numbers instead.
      return typeof body === 'string' ? { kind: 'counter', counter: body } : undefined;
    default:
      return undefined;
  }
}

/** `{ "goto": { "target": CHAIN } }`, `{ "drop": null }` and so on. */
export function readVerdict(json: unknown): Verdict | undefined {
  const [kind, body] = onlyEntry(json) ?? [];
  switch (kind) {
    case 'accept':
    case 'drop':
    case 'return':
    case 'continue':
      return { kind };
    case 'jump':
    case 'goto': {
      const chain = asObject(body)?.['target'];
      return typeof chain === 'string' ? { kind, chain } : undefined;
    }
    default:
      return undefined;
  }
}

/** A constant of that type: a text, a number, a prefix or a range. */
export function readConstant(json: unknown, type: ValueType): Value | undefined {
  if (typeof json === 'string' || typeof json === 'number') return readValue(String(json), type);
  const [kind, body] = onlyEntry(json) ?? [];
  if (kind === 'prefix')
    return readValue(`${scalar(asObject(body)?.['addr'])}/${scalar(asObject(body)?.['len'])}`, type);
  if (kind === 'range' && Array.isArray(body)) return readValue(`${scalar(body[0])}-${scalar(body[1])}`, type);
  return undefined;
}

function readMatch(match: JsonObject | undefined): Expression | undefined {
  const left = readSelector(match?.['left']);
  const op = match?.['op'];
  if (!left || (op !== '==' && op !== '!=' && op !== 'in')) return undefined;
  const comparison = readMaskedPrefix(left, match?.['right']) ?? readComparison(left, match?.['right']);
  if (!comparison) return undefined;
  const negated = op === '!=' ? { negated: true as const } : {};
  return { kind: 'match', left: comparison.left, ...negated, right: comparison.right };
}

function readComparison(left: Selector, json: unknown): Comparison | undefined {
  const right = readRight(left, json);
  return right && { left, right };
}

function readRight(left: Selector, json: unknown): Right | undefined {
  if (typeof json === 'string' && json.startsWith('@')) return { kind: 'set', set: json.slice(1) };
  const type = comparedType(left);
  if (type === undefined) return undefined;
  const [kind, body] = onlyEntry(json) ?? [];
  if (kind === 'set') {
    const items = Array.isArray(body) ? body : [body];
    const values = items.map((item) => readConstant(item, type));
    return values.every((value) => value !== undefined) ? { kind: 'any-of', values } : undefined;
  }
  const value = readConstant(json, type);
  return value && { kind: 'value', value };
}

function readMaskedPrefix([field]: Selector, json: unknown): Comparison | undefined {
  const [kind, body] = onlyEntry(json) ?? [];
  const prefix = kind === 'prefix' ? asObject(body) : undefined;
  const value = prefix?.['addr'];
  const length = prefix?.['len'];
  if (field?.kind !== 'meta' || typeof value !== 'number' || typeof length !== 'number') return undefined;
  return maskedComparison(field, length, value);
}

function readVerdictMap(vmap: JsonObject | undefined): Expression | undefined {
  const data = vmap?.['data'];
  if (typeof data === 'string' && data.startsWith('@')) {
    const key = readSelector(vmap?.['key']);
    return key && { kind: 'verdict-map', key, map: data.slice(1) };
  }
  const chains = readDraws(vmap, (item) => {
    const verdict = readVerdict(item);
    return verdict?.kind === 'goto' ? verdict.chain : undefined;
  });
  return chains && { kind: 'goto-random', chains };
}

function readDnat(dnat: JsonObject | undefined, family: Family): Expression | undefined {
  const address = dnat?.['addr'];
  if (dnat?.['flags'] !== undefined) return undefined;
  if (typeof address === 'string') {
    const target = readTarget(address, scalar(dnat?.['port']), family);
    return target && { kind: 'dnat', target };
  }
  const [kind, body] = onlyEntry(address) ?? [];
  if (kind !== 'map') return undefined;
  const targets = readDraws(asObject(body), (item) => readConcatTarget(item, family));
  return targets && { kind: 'dnat-random', targets };
}

function readConcatTarget(json: unknown, family: Family): Target | undefined {
  const [kind, parts] = onlyEntry(json) ?? [];
  if (kind !== 'concat' || !Array.isArray(parts) || parts.length !== 2) return undefined;
  return readTarget(scalar(parts[0]), scalar(parts[1]), family);
}

/** The items of a map whose key is drawn at random: `numgen random mod N`, and one item for each of N. */
function readDraws<T>(
  map: JsonObject | undefined,
  readItem: (json: unknown) => T | undefined,
): readonly T[] | undefined {
  const draw = asObject(asObject(map?.['key'])?.['numgen']);
  const count = draw?.['mod'];
  if (draw?.['mode'] !== 'random' || typeof count !== 'number' || (draw['offset'] ?? 0) !== 0) return undefined;
  const set = asObject(map?.['data'])?.['set'];
  if (!Array.isArray(set)) return undefined;
  const pairs: (readonly [number, T])[] = [];
  for (const pair of set as readonly unknown[]) {
    const [index, item] = Array.isArray(pair) ? (pair as readonly unknown[]) : [];
    const read = readItem(item);
    if (typeof index !== 'number' || read === undefined) return undefined;
    pairs.push([index, read]);
  }
  return inOrder(pairs, count);
}

function readSetMark(mangle: JsonObject | undefined): Expression | undefined {
  const key = asObject(asObject(mangle?.['key'])?.['meta'])?.['key'];
  if (key !== 'mark') return undefined;
  const value = mangle?.['value'];
  const plain = readNumber(scalar(value));
  if (plain !== undefined) return { kind: 'set-mark', operation: 'set', value: plain };
  const [operator, sides] = onlyEntry(value) ?? [];
  const operation = operator === '|' ? 'or' : operator === '^' ? 'xor' : undefined;
  if (!operation || !Array.isArray(sides) || !isMark(sides[0])) return undefined;
  const bits = readNumber(scalar(sides[1]));
  return bits === undefined ? undefined : { kind: 'set-mark', operation, value: bits };
}

function isMark(json: unknown): boolean {
  return asObject(asObject(json)?.['meta'])?.['key'] === 'mark';
}

function readMasquerade(json: unknown): Expression | undefined {
  if (json === null) return { kind: 'masquerade', fullyRandom: false };
  const body = asObject(json);
  if (!body || Object.keys(body).some((key) => key !== 'flags')) return undefined;
  const flags = strings(body['flags']);
  if (flags.length === 0) return { kind: 'masquerade', fullyRandom: false };
  return flags.length === 1 && flags[0] === 'fully-random' ? { kind: 'masquerade', fullyRandom: true } : undefined;
}

function readReject(json: unknown, family: Family): Expression | undefined {
  if (json === null) return { kind: 'reject' };
  const body = asObject(json);
  if (!body || typeof body['type'] !== 'string') return undefined;
  return rejectWith(`${body['type']} ${scalar(body['expr'])}`.trimEnd(), family);
}

function readWriteSet(body: JsonObject | undefined): Expression | undefined {
  const operation = body?.['op'];
  const set = body?.['set'];
  if (operation !== 'add' && operation !== 'update' && operation !== 'delete') return undefined;
  if (typeof set !== 'string' || !set.startsWith('@')) return undefined;
  if (Object.keys(body ?? {}).length > 3) return undefined;
  const key = readSelector(body?.['elem']);
  return key && { kind: 'write-set', operation, set: set.slice(1), key };
}

function readSelector(json: unknown): Selector | undefined {
  const [kind, parts] = onlyEntry(json) ?? [];
  const items = kind === 'concat' && Array.isArray(parts) ? (parts as readonly unknown[]) : [json];
  const fields = items.map(readField);
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

function readField(json: unknown): Field | undefined {
  const [kind, body] = onlyEntry(json) ?? [];
  if (kind === '&' && Array.isArray(body)) return readMasked(body);
  const of = asObject(body);
  if (!of) return undefined;
  const [key, field, protocol, result] = [of['key'], of['field'], of['protocol'], of['result']];
  if (kind === 'payload' && typeof protocol === 'string' && typeof field === 'string') {
    return { kind, protocol, field };
  }
  if ((kind === 'meta' || kind === 'ct') && typeof key === 'string' && of['dir'] === undefined) return { kind, key };
  return kind === 'fib' && typeof result === 'string' ? { kind, flags: strings(of['flags']), result } : undefined;
}

function readMasked([inner, bits]: readonly unknown[]): Field | undefined {
  const field = readField(inner);
  const mask = readNumber(scalar(bits));
  return field && mask !== undefined ? { kind: 'masked', field, mask } : undefined;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(json: unknown): JsonObject | undefined {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
}

/** The one property of an object that has no other: nft's JSON says so what a thing is. */
export function onlyEntry(json: unknown): readonly [kind: string, body: unknown] | undefined {
  const object = asObject(json);
  if (!object) return undefined;
  const entries = Object.entries(object);
  return entries.length === 1 ? entries[0] : undefined;
}

/** Flags, which some versions of nft print as one text where there is one. */
export function strings(json: unknown): readonly string[] {
  const items: readonly unknown[] = Array.isArray(json) ? json : [json];
  return items.filter((item) => typeof item === 'string');
}

/** A text or a number as text, else ''. */
function scalar(json: unknown): string {
  return typeof json === 'string' || typeof json === 'number' ? String(json) : '';
}
