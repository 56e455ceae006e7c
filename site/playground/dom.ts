export function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

export type Choice = readonly [value: string, text: string];

/** Offers choices. Selects `value`, or else the first. */
export function fill(select: HTMLSelectElement, choices: readonly Choice[], value: string): void {
  const isSame = choices.length === select.options.length;
  if (!isSame || choices.some(([each, text], i) => !isOption(select.options[i], each, text))) {
    select.replaceChildren(...choices.map(([each, text]) => new Option(text, each)));
  }
  select.value = value;
  if (select.selectedIndex < 0 && choices.length > 0) select.selectedIndex = 0;
}

function isOption(option: HTMLOptionElement | undefined, value: string, text: string): boolean {
  return option?.value === value && option.text === text;
}

export function suggest(list: HTMLDataListElement, values: readonly string[]): void {
  list.replaceChildren(...values.map((value) => new Option(value, value)));
}

export function group(label: string, choices: readonly Choice[]): HTMLOptGroupElement {
  const made = document.createElement('optgroup');
  made.label = label;
  made.append(...choices.map(([value, text]) => new Option(text, value)));
  return made;
}

/** The longest text to type, because a browser takes too long for a longer one. */
const mostTyped = 200_000;

/** Replaces a whole text as if it were typed, so that the browser can undo this. */
export function retype(editor: HTMLTextAreaElement, text: string): void {
  editor.focus();
  editor.select();
  const isTyped =
    Math.max(text.length, editor.value.length) <= mostTyped && document.execCommand('insertText', false, text);
  if (!isTyped) editor.value = text;
}

/** Returns a function that runs `run` once there has been no call for some milliseconds. */
export function afterPause(run: () => void, pause = 200): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, pause);
  };
}
