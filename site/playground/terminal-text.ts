/** The page's classes for the colours in the compiler's texts. */
const classes: ReadonlyMap<string, string> = new Map([
  ['1', 'bold'],
  ['2', 'dim'],
  ['31', 'bad'],
  ['32', 'good'],
  ['33', 'changed'],
]);

/** Longer texts are cut off, because a browser takes long to lay them out. */
const mostCharacters = 400_000;

/** Shows a text with terminal colours. The text becomes text nodes and nothing else. */
export function showTerminalText(element: HTMLElement, text: string): void {
  const shown =
    text.length > mostCharacters ? `${text.slice(0, mostCharacters)}\n… and more: use the program kpc` : text;
  const parts: Node[] = [];
  let style: string | undefined;
  for (const [i, part] of shown.split('\u001b[').entries()) {
    const [code, rest] = i === 0 ? ['', part] : splitCode(part);
    if (code !== '') style = classes.get(code);
    if (rest === '') continue;
    const span = document.createElement('span');
    if (style !== undefined) span.className = style;
    span.textContent = rest;
    parts.push(span);
  }
  element.replaceChildren(...parts);
}

function splitCode(part: string): readonly [code: string, rest: string] {
  const end = /^\d+m/.exec(part)?.[0].length ?? 0;
  return end === 0 ? ['', part] : [part.slice(0, end - 1), part.slice(end)];
}
