// Texts that kpc and kubectl are asked about: made of a small grammar of what YAML readers take differently.
// @ts-check

/** @param {number} seed */
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const words = [
  'a',
  'b c',
  '80',
  'yes',
  '~',
  '1.5',
  "it's",
  'x:y',
  '-1',
  '0x10',
  'http://e.test/?q',
  '<<',
  '*x',
  '&x v',
  '!t v',
  '#n',
];
const tags = [
  '!!str',
  '!!int',
  '!!bool',
  '!!null',
  '!!float',
  '!!merge',
  '!!map',
  '!!seq',
  '!local',
  '!',
  '!!foo',
  '!<tag:yaml.org,2002:int>',
];
const keys = ['a', 'b', 'key', '"q"', "'s'", '80', 'yes', '<<', '!!str 1', '!!int 8', '!!merge <<'];
const ends = ['', '\n', '\n...\n', '\n# c\n', '\n---\nz: 1\n', '\n---\n{"z": 1}\n', ' # c\n', '\n\n'];
const starts = ['', '', '', '---\n', '\uFEFF', '# c\n', '\n', '--- \n'];

/**
 * One text, the same for the same number.
 * @param {number} seed
 */
export function makeText(seed) {
  const random = createRandom(seed * 2654435761);
  for (let i = 0; i < 3; i++) random();
  /** @param {number} n */
  const below = (n) => Math.floor(random() * n);
  /**
   * @template T
   * @param {readonly T[]} list
   */
  const pick = (list) => /** @type {T} */ (list[below(list.length)]);
  /** Where a line goes on: mostly no deeper than it should. @param {number} indent */
  const margin = (indent) =>
    ' '.repeat(Math.max(0, indent + pick([-2, -1, 0, 0, 1, 2]))) + (below(20) === 0 ? '\t' : '');
  const lineEnd = () => (below(25) === 0 ? '\r\n' : '\n');

  /** @param {number} indent */
  function quoted(indent) {
    const quote = pick(['"', "'"]);
    const parts = Array.from({ length: 1 + below(3) }, () =>
      pick(['x', 'y z', '!a', '? b', '*c', '{', '# d', ': ', '', quote === '"' ? String.raw`\t` : "''"]),
    );
    return quote + parts.join(pick([' ', lineEnd() + margin(indent), '\n\n' + margin(indent)])) + quote;
  }

  /** @param {number} indent @param {number} depth @returns {string} */
  function flow(indent, depth) {
    const isMap = below(2) === 0;
    const gap = () => pick(['', ' ', lineEnd() + margin(indent), '\n' + margin(indent), ' # c\n' + margin(indent)]);
    const item = () => {
      const value = depth > 2 || below(3) > 0 ? scalar(indent) : flow(indent, depth + 1);
      return isMap ? `${pick(keys)}:${pick([' ', ' ', '\n' + margin(indent)])}${value}` : value;
    };
    const items = Array.from({ length: below(4) }, item);
    return (isMap ? '{' : '[') + gap() + items.join(gap() + ',' + gap()) + gap() + (isMap ? '}' : ']');
  }

  /** @param {number} indent */
  function scalar(indent) {
    const text = pick([() => pick(words), () => quoted(indent), () => pick(words)])();
    return below(5) === 0 ? `${pick(tags)} ${text}` : text;
  }

  /** A value behind its key or dash. @param {number} indent @param {number} depth @returns {string} */
  function blockValue(indent, depth) {
    switch (below(depth > 2 ? 4 : 7)) {
      case 0:
        return ` ${flow(indent, 0)}${lineEnd()}`;
      case 1:
        return ` ${quoted(indent)}\n`;
      case 2:
        return ` ${pick(tags)}${below(2) === 0 ? ` ${flow(indent, 1)}` : ''}\n`;
      case 3:
        return ` ${scalar(indent)}${lineEnd()}`;
      case 4:
        return ` ${pick(['|', '>', '|-', '>+'])}\n${' '.repeat(indent + 2)}t\n${margin(indent + 2)}u\n`;
      default:
        return `\n${block(indent + pick([0, 2, 2]), depth + 1)}`;
    }
  }

  /** @param {number} indent @param {number} depth @returns {string} */
  function block(indent, depth) {
    const isList = below(3) === 0;
    const lines = Array.from(
      { length: 1 + below(3) },
      () => ' '.repeat(indent) + (isList ? '-' : `${pick(keys)}:`) + blockValue(indent, depth),
    );
    return lines.join('');
  }

  /** @param {number} depth @returns {string} */
  function json(depth) {
    const gap = () => pick(['', ' ', '\n', '\n\t', '\n\t\t', '\t']);
    const item = () =>
      depth > 2 || below(2) === 0 ? pick(['1', '"x"', 'null', 'true', '"a\\/b"', '[]']) : json(depth + 1);
    const fields = Array.from({ length: below(3) }, (_, i) => `"k${i}":${gap()}${item()}`);
    return `{${gap()}${fields.join(`,${gap()}`)}${gap()}}`;
  }

  const body = pick([
    () => block(0, 0),
    () => block(0, 0),
    () => flow(0, 0),
    () => json(0),
    () => json(0) + pick(['', '\n', ' ']) + json(0),
    () => quoted(0),
  ])();
  return pick(starts) + body.replace(/\n$/, '') + pick(ends);
}
