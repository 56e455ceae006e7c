import { describe, expect, test } from 'vitest';
import {
  amount,
  boolean,
  listOf,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  optional,
  readShape,
  text,
  variantOf,
  wholeNumber,
  type Shape,
  type Shaped,
} from '../../src/base/json-shape.ts';

interface Port {
  readonly name: string;
  readonly number: number;
  readonly node?: number | undefined;
}

const port = objectOf<Port>({ name: text, number: wholeNumber(1, 65_535), node: optional(wholeNumber(0)) });
const ports = listOf(port);

test.each<[value: unknown, wrong: string | undefined]>([
  [[], undefined],
  [[{ name: 'a', number: 1 }], undefined],
  [[{ name: 'a', number: 1, node: 0, other: true }], undefined],
  [{}, 'ports must be a list'],
  [[null], 'ports[0] must be an object'],
  [[{ name: 'a', number: 1 }, { name: 'b' }], 'ports[1].number is missing'],
  [[{ name: 'a', number: 0 }], 'ports[0].number must be a whole number from 1 to 65535'],
  [[{ name: 'a', number: 1, node: null }], 'ports[0].node must be a whole number from 0 on'],
])('%j', (value, wrong) => {
  expect(readShape(objectOf({ ports }), { ports: value })).toEqual(
    wrong === undefined ? { value: { ports: value } } : { wrong },
  );
});

test('a field that an object only inherits is missing', () => {
  expect(readShape(objectOf<{ readonly toString: string }>({ toString: text }), {})).toEqual({
    wrong: 'toString is missing',
  });
});

test('a value is read with the type of its shape, or there is why not', () => {
  const good = readShape(ports, [{ name: 'a', number: 1 }]);
  const numbers: readonly number[] = 'value' in good ? good.value.map(({ number }) => number) : [];
  expect(numbers).toEqual([1]);
  expect(readShape(ports, 'x')).toEqual({ wrong: 'it must be a list' });
  expect(readShape(port, 'x')).toEqual({ wrong: 'it is not a JSON object' });
});

describe('types', () => {
  test('a shape is checked against the type that it stands for', () => {
    const shapes = [
      // @ts-expect-error: the name of a port is a text.
      objectOf<Port>({ name: amount, number: amount, node: optional(amount) }),
      // @ts-expect-error: each field needs a shape, those that may be missing too.
      objectOf<Port>({ name: text, number: amount }),
      // @ts-expect-error: the number may not be missing.
      objectOf<Port>({ name: text, number: optional(amount), node: optional(amount) }),
    ];
    expect(shapes).toHaveLength(3);
  });

  test('follow from shapes', () => {
    const local = variantOf('mode', {
      off: objectOf<object>({}),
      bridge: objectOf<{ readonly name: string }>({ name: text }),
    });
    const off: Shaped<typeof local> = { mode: 'off' };
    const bridge: Shaped<typeof local> = { mode: 'bridge', name: 'cni0' };
    // @ts-expect-error: a bridge has a name.
    const nameless: Shaped<typeof local> = { mode: 'bridge' };
    expect([off, bridge, nameless].map((value) => readShape(local, value))).toEqual([
      { value: off },
      { value: bridge },
      { wrong: 'name is missing' },
    ]);
    const files: Shape<{ readonly [Name in 'a' | 'b']?: string }> = mapOf<string, 'a' | 'b'>(text);
    expect(readShape(files, { a: 'x' })).toHaveProperty('value');
    const word: Shape<'x' | 'y' | null> = nullable(oneOf('x', 'y'));
    expect(readShape(word, 'z')).toEqual({ wrong: 'it must be "x" or "y"' });
    const isOn: Shape<boolean> = boolean;
    expect(readShape(isOn, 1)).toEqual({ wrong: 'it must be true or false' });
  });
});
