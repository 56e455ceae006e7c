// Runs the built kpc and draws what a terminal shows, as SVG. "npm run docs" and the tests call this. By hand:
//
//   node scripts/record-terminal.mjs
// @ts-check
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * A recording: commands as typed, each with the words after "kpc" and its standard input. If only the first paragraphs are
 * shown, a line says so.
 *
 * @typedef {{ readonly typed: string, readonly args: readonly string[], readonly stdin?: string, readonly paragraphs?: number }} Command
 * @typedef {{ readonly file: string, readonly title: string, readonly before?: readonly string[], readonly commands: readonly Command[] }} Recording
 */

/** The name of the reader's file in the recording's folder. */
const svc = 'svc.yaml';
const quickstart = join(root, 'fixtures/quickstart/svc.yaml');
const ready = readFileSync(quickstart, 'utf8').replace('ready: false', 'ready: true');

/** @type {readonly Recording[]} */
export const recordings = [
  {
    file: 'docs/describe.svg',
    title: 'kpc describe shows a Service, its endpoints and all that stems from them in the kernel',
    commands: [
      {
        typed: `kpc describe nginx --rules -f ${svc} --proxy-mode ipvs`,
        args: ['describe', 'nginx', '--rules', '-f', svc, '--proxy-mode', 'ipvs'],
        paragraphs: 3,
      },
    ],
  },
  {
    file: 'docs/diff.svg',
    title: 'kpc diff shows what changes in the kernel when a pod becomes ready, and why',
    before: ['compile', '-f', svc, '--proxy-mode', 'ipvs', '--golden', 'golden/worker-1'],
    commands: [
      {
        typed: `sed 's/ready: false/ready: true/' ${svc} | kpc diff golden/worker-1 -`,
        args: ['diff', 'golden/worker-1', '-'],
        stdin: ready,
      },
    ],
  },
];

/**
 * Returns what a terminal shows of a recording: each prompt with its command and output, in colour.
 *
 * @param {Recording} recording
 * @returns {Promise<string>}
 */
async function record({ before, commands }) {
  const { main } = await import(pathToFileURL(join(root, 'dist', 'kpc.js')).href);
  const folder = mkdtempSync(join(tmpdir(), 'kpc-record-'));
  const left = process.cwd();
  symlinkSync(quickstart, join(folder, svc));
  process.chdir(folder);
  let shown = '';
  /** @param {readonly string[]} args @param {string} stdin */
  const run = (args, stdin) =>
    main(args, {
      out: async (/** @type {string} */ text) => void (shown += text),
      err: async (/** @type {string} */ text) => void (shown += text),
      status: async () => {},
      readStdin: async () => stdin,
      colour: { out: true, err: true },
      interactive: true,
    });
  try {
    if (before) await run(before, '');
    let recorded = '';
    for (const { typed, args, stdin, paragraphs } of commands) {
      shown = '';
      await run(args, stdin ?? '');
      recorded += `\u001b[32m$\u001b[39m \u001b[1m${typed}\u001b[22m\n${firstParagraphs(shown, paragraphs)}`;
    }
    return recorded;
  } finally {
    process.chdir(left);
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} text
 * @param {number | undefined} count
 */
function firstParagraphs(text, count) {
  const all = text.split('\n\n');
  if (count === undefined || all.length <= count) return text;
  return `${all.slice(0, count).join('\n\n')}\n\n\u001b[2m… and what pods see in DNS and in their environment\u001b[22m\n`;
}

/** SVG attributes for a terminal's colours and weights. */
const styles = new Map([
  [1, { name: 'font-weight', value: 'bold' }],
  [2, { name: 'fill', value: '#8b949e' }],
  [31, { name: 'fill', value: '#ff7b72' }],
  [32, { name: 'fill', value: '#7ee787' }],
  [33, { name: 'fill', value: '#e3b341' }],
  [34, { name: 'fill', value: '#79c0ff' }],
  [35, { name: 'fill', value: '#d2a8ff' }],
  [36, { name: 'fill', value: '#a5d6ff' }],
]);

/** The attributes that an ANSI code resets. */
const ends = new Map([
  [22, ['font-weight', 'fill']],
  [39, ['fill']],
  [0, ['font-weight', 'fill']],
]);

// Matches the codes that chalk writes before and after a coloured text.
const colourCode = new RegExp(`${String.fromCodePoint(27)}\\[(\\d+)m`);

const widthOfCharacter = 7.8;
const heightOfLine = 18;
const margin = 14;

/**
 * Draws text with ANSI colours.
 *
 * @param {string} text
 * @param {string} title
 */
function draw(text, title) {
  const lines = text
    .trimEnd()
    .split('\n')
    .flatMap((line) => fold(line));
  const columns = Math.max(...lines.map((line) => withoutColours(line).length));
  const width = Math.ceil(columns * widthOfCharacter + 2 * margin);
  const height = lines.length * heightOfLine + 2 * margin;
  const drawn = lines.map((line, i) => {
    const y = margin + (i + 1) * heightOfLine - 5;
    // Chromium does not inherit xml:space from the group.
    return line === '' ? '' : `<text xml:space="preserve" x="${margin}" y="${y}">${drawLine(line)}</text>\n`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escape(title)}</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e6edf3">
${drawn.join('')}</g>
</svg>
`;
}

/** Columns of the drawn terminal. A README and the site show this width without making the letters small. */
const mostColumns = 88;

/**
 * Folds a line at a space. The rest is indented below, in the same colour.
 *
 * @param {string} line
 * @returns {readonly string[]}
 */
function fold(line) {
  if (withoutColours(line).length <= mostColumns) return [line];
  const indent = ' '.repeat((/^ */.exec(withoutColours(line))?.[0].length ?? 0) + 4);
  /** @type {string[]} */
  const folded = [];
  let row = '';
  let codes = '';
  // A colour has no width, and continues in the next row.
  for (const part of line.split(/(?<= )/)) {
    const plain = withoutColours(part);
    if (withoutColours(row + part).trimEnd().length > mostColumns && withoutColours(row).trim() !== '') {
      folded.push(row.trimEnd());
      row = `${codes}${indent}${part}`;
    } else row += part;
    if (plain !== part) codes = (`${codes}${part}`.match(new RegExp(colourCode, 'g')) ?? []).join('');
  }
  return [...folded, row];
}

/** @param {string} line */
function withoutColours(line) {
  return line
    .split(colourCode)
    .filter((_, i) => i % 2 === 0)
    .join('');
}

/** @param {string} line */
function drawLine(line) {
  /** @type {Map<string, string>} */
  const attributes = new Map();
  let drawn = '';
  for (const [i, part] of line.split(colourCode).entries()) {
    // Texts and codes alternate.
    if (i % 2 === 0) {
      const list = [...attributes].map(([name, value]) => ` ${name}="${value}"`).join('');
      if (part !== '') drawn += list === '' ? escape(part) : `<tspan${list}>${escape(part)}</tspan>`;
      continue;
    }
    const style = styles.get(Number(part));
    if (style) attributes.set(style.name, style.value);
    for (const name of ends.get(Number(part)) ?? []) attributes.delete(name);
  }
  return drawn;
}

/** @param {string} text */
function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/**
 * Draws a recording.
 *
 * @param {Recording} recording
 */
export async function drawRecording(recording) {
  return draw(await record(recording), recording.title);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const recording of recordings) writeFileSync(join(root, recording.file), await drawRecording(recording));
}
