import type { Problem } from './questions.ts';

const mostProblems = 100;

export function countProblems(problems: readonly Problem[]): string {
  const counts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const count = problems.filter((each) => each.severity === severity).length;
    return count === 0 ? [] : [`${count} ${severity}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'No problems' : counts.join(', ');
}

export function showProblems(list: HTMLUListElement, problems: readonly Problem[], editor: HTMLTextAreaElement): void {
  const items = problems.slice(0, mostProblems).map((problem) => listItem(problem, editor));
  if (problems.length > mostProblems) {
    const more = document.createElement('li');
    more.textContent = `… and ${problems.length - mostProblems} more`;
    items.push(more);
  }
  list.replaceChildren(...items);
}

function listItem({ severity, code, text, help, place }: Problem, editor: HTMLTextAreaElement): HTMLLIElement {
  const item = document.createElement('li');
  item.className = severity;
  if (place?.line !== undefined) item.append(placeButton(place.line, place.column ?? 1, editor), ' ');
  const message = document.createElement('span');
  message.textContent = `${severity}: ${text} `;
  item.append(message);
  if (code !== undefined) {
    const meaning = document.createElement('a');
    meaning.href = `../docs/codes.html#${encodeURIComponent(code)}`;
    meaning.textContent = code;
    item.append(meaning);
  }
  if (help !== undefined) {
    const advice = document.createElement('span');
    advice.className = 'help';
    advice.textContent = help;
    item.append(advice);
  }
  return item;
}

function placeButton(line: number, column: number, editor: HTMLTextAreaElement): HTMLButtonElement {
  const place = document.createElement('button');
  place.type = 'button';
  place.textContent = `${line}:${column}`;
  place.setAttribute('aria-label', `Go to line ${line}, column ${column}`);
  place.addEventListener('click', () => moveCursor(editor, line, column));
  return place;
}

function moveCursor(editor: HTMLTextAreaElement, line: number, column: number): void {
  const lines = editor.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const current = lines[line - 1] ?? '';
  const at = start + Math.min(column - 1, current.length);
  const [word = ''] = /^[^\s,}\]]*/.exec(current.slice(column - 1)) ?? [];
  editor.focus();
  editor.setSelectionRange(at, at + word.length);
  const height = Number.parseFloat(getComputedStyle(editor).lineHeight);
  editor.scrollTop = Math.max(0, (line - 1) * height - editor.clientHeight / 2);
  const longest = lines.reduce((most, { length }) => Math.max(most, length), 1);
  editor.scrollLeft = Math.max(0, (column * editor.scrollWidth) / longest - editor.clientWidth / 2);
}

/** Limit on line numbers, because a browser takes too long to lay out more. */
const mostNumbers = 20_000;

export function showGutter(gutter: HTMLPreElement, editor: HTMLTextAreaElement, problems: readonly Problem[]): void {
  const count = editor.value.split('\n').length;
  gutter.hidden = count > mostNumbers;
  if (gutter.hidden) return gutter.replaceChildren();
  const worst = new Map<number, string>();
  for (const { place, severity } of problems) {
    const line = place?.line;
    if (line !== undefined && severity !== 'note' && worst.get(line) !== 'error') worst.set(line, severity);
  }
  const parts: Node[] = [];
  let plain = '';
  for (let line = 1; line <= count; line++) {
    const severity = worst.get(line);
    if (severity === undefined) {
      plain += `${line}\n`;
      continue;
    }
    const mark = document.createElement('span');
    mark.className = severity;
    mark.textContent = String(line);
    parts.push(document.createTextNode(plain), mark);
    plain = '\n';
  }
  gutter.replaceChildren(...parts, document.createTextNode(plain));
  gutter.scrollTop = editor.scrollTop;
}
