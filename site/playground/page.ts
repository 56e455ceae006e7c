import { startAsker } from './ask.ts';
import type { Answer, Compiled, JsonDiagnostic } from './compiler.ts';
import { drawWay } from './draw-ways.ts';
import { example } from './example.ts';
import { scriptUrl } from './script-url.ts';
import { packState, unpackState } from './share.ts';
import {
  inputOf,
  manifestsName,
  modeList,
  releaseList,
  secondInputOf,
  startState,
  views,
  type PageState,
  type ViewName,
} from './state.ts';
import { showTerminalText } from './terminal-text.ts';

/** More is not compiled here: the program kpc takes any size. */
const mostManifests = 8_000_000;
const mostProblems = 100;
/** Milliseconds without a key before it is compiled. */
const pause = 200;

function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

const page = {
  manifests: find('manifests', HTMLTextAreaElement),
  gutter: find('gutter', HTMLPreElement),
  editor: find('editor', HTMLDivElement),
  open: find('open', HTMLInputElement),
  problems: find('problems', HTMLUListElement),
  problemsTitle: find('problems-title', HTMLHeadingElement),
  node: find('node', HTMLSelectElement),
  mode: find('mode', HTMLSelectElement),
  release: find('release', HTMLSelectElement),
  assume: find('assume', HTMLInputElement),
  summary: find('summary', HTMLParagraphElement),
  service: find('service', HTMLSelectElement),
  ways: find('ways', HTMLDivElement),
  matrix: find('matrix', HTMLPreElement),
  description: find('description', HTMLPreElement),
  file: find('file', HTMLSelectElement),
  content: find('content', HTMLPreElement),
  packet: find('packet', HTMLFormElement),
  from: find('from', HTMLInputElement),
  to: find('to', HTMLInputElement),
  protocol: find('protocol', HTMLSelectElement),
  tracePicture: find('trace-picture', HTMLImageElement),
  traceText: find('trace-text', HTMLPreElement),
  against: find('against', HTMLSelectElement),
  second: find('second', HTMLTextAreaElement),
  secondBox: find('second-box', HTMLDivElement),
  secondProblems: find('second-problems', HTMLUListElement),
  comparison: find('comparison', HTMLPreElement),
  shared: find('shared', HTMLDivElement),
  link: find('link', HTMLInputElement),
  linkNote: find('link-note', HTMLParagraphElement),
  results: find('results', HTMLElement),
  offline: find('offline', HTMLSpanElement),
};

const senders = find('senders', HTMLDataListElement);
const targets = find('targets', HTMLDataListElement);

let state: PageState = startState;
let output: Compiled['output'];
let shownPicture = '';

const asker = startAsker((isBusy) => page.results.setAttribute('aria-busy', String(isBusy)));

/** What differs is compiled and shown again. */
function change(changes: Partial<PageState>): void {
  update(changes);
  compile();
}

function show(changes: Partial<PageState>): void {
  update(changes);
  showView();
}

/** The link that is shown, if any, no longer holds all that is in the page. */
function update(changes: Partial<PageState>): void {
  state = { ...state, ...changes };
  page.shared.hidden = true;
}

function compile(): void {
  if (state.manifests.length > mostManifests) {
    showCompiled({ kind: 'wrong', text: 'more than 8 MB of manifests: use the program kpc, which takes any size' });
    return;
  }
  asker.ask({ kind: 'compile', input: inputOf(state) }, showCompiled);
}

function showCompiled(answer: Answer): void {
  if (answer.kind !== 'compiled') {
    output = undefined;
    page.summary.textContent = answer.kind === 'wrong' ? answer.text : '';
    showView();
    return;
  }
  const { diagnostics, nodes } = answer.result;
  output = answer.result.output;
  showProblems(page.problems, diagnostics, page.manifests);
  page.problemsTitle.textContent = countProblems(diagnostics);
  showGutter(diagnostics);
  fill(page.node, nodes.length === 0 ? [['', 'any']] : nodes.map((name) => [name, name]), output?.node ?? state.node);
  page.summary.textContent =
    output?.summary ?? 'Nothing is compiled until the errors are gone. They are listed below the manifests.';
  if (output) {
    const files = output.files.map(([name]) => [name, name] as const);
    fill(page.file, files, files.some(([name]) => name === state.file) ? state.file : output.mainFile);
    fill(
      page.service,
      output.services.map((name) => [name, name]),
      state.service,
    );
    suggest(senders, output.senders);
    suggest(targets, output.targets);
    if (state.to === '' && page.to.value === '') {
      state = { ...state, to: output.targets[0] ?? '' };
      page.to.value = state.to;
    }
  }
  showView();
}

function countProblems(diagnostics: readonly JsonDiagnostic[]): string {
  const words = { error: 'error', warning: 'warning', note: 'note' } as const;
  const counts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const count = diagnostics.filter((each) => each.severity === severity).length;
    return count === 0 ? [] : [`${count} ${words[severity]}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'No problems' : counts.join(', ');
}

function showProblems(
  list: HTMLUListElement,
  diagnostics: readonly JsonDiagnostic[],
  editor: HTMLTextAreaElement,
): void {
  const items = diagnostics.slice(0, mostProblems).map((diagnostic) => {
    const { severity, code, text, help, line, column } = diagnostic;
    const item = document.createElement('li');
    item.className = severity;
    const message = document.createElement('span');
    message.textContent = `${severity}: ${text} `;
    const meaning = document.createElement('a');
    meaning.href = `../docs/codes.html#${encodeURIComponent(code)}`;
    meaning.textContent = code;
    if (line !== undefined && column !== undefined) {
      const place = document.createElement('button');
      place.type = 'button';
      place.textContent = `${line}:${column}`;
      place.setAttribute('aria-label', `Go to line ${line}, column ${column}`);
      place.addEventListener('click', () => moveCursor(editor, line, column));
      item.append(place, ' ');
    }
    item.append(message, meaning);
    if (help !== undefined) {
      const advice = document.createElement('span');
      advice.className = 'help';
      advice.textContent = help;
      item.append(advice);
    }
    return item;
  });
  if (diagnostics.length > mostProblems) {
    const more = document.createElement('li');
    more.textContent = `… and ${diagnostics.length - mostProblems} more`;
    items.push(more);
  }
  list.replaceChildren(...items);
}

/** Puts the cursor at a place, and the place in sight. */
function moveCursor(editor: HTMLTextAreaElement, line: number, column: number): void {
  const lines = editor.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const current = lines[line - 1] ?? '';
  const at = start + Math.min(column - 1, current.length);
  const [word = ''] = /^[^\s,}\]]*/.exec(current.slice(column - 1)) ?? [];
  editor.focus();
  editor.setSelectionRange(at, at + Math.max(word.length, 0));
  const height = Number.parseFloat(getComputedStyle(editor).lineHeight);
  editor.scrollTop = Math.max(0, (line - 1) * height - editor.clientHeight / 2);
  const width = editor.scrollWidth / Math.max(1, ...lines.map(({ length }) => length));
  editor.scrollLeft = Math.max(0, column * width - editor.clientWidth / 2);
}

/** The numbers of the lines, with those that have a problem marked. */
function showGutter(diagnostics: readonly JsonDiagnostic[]): void {
  const worst = new Map<number, string>();
  for (const { line, severity } of diagnostics) {
    if (line !== undefined && severity !== 'note' && worst.get(line) !== 'error') worst.set(line, severity);
  }
  const count = page.manifests.value.split('\n').length;
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
  page.gutter.replaceChildren(...parts, document.createTextNode(plain));
  page.gutter.scrollTop = page.manifests.scrollTop;
}

function fill(select: HTMLSelectElement, options: readonly (readonly [string, string])[], value: string): void {
  const same = options.length === select.options.length;
  if (!same || options.some(([each], i) => select.options[i]?.value !== each)) {
    select.replaceChildren(...options.map(([each, text]) => new Option(text, each)));
  }
  select.value = value;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

function suggest(list: HTMLDataListElement, values: readonly string[]): void {
  list.replaceChildren(...values.map((value) => new Option(value, value)));
}

/** Shows the results that are in front, and asks for them. */
function showView(): void {
  for (const view of views) {
    const isShown = view === state.view;
    const tab = find(`tab-${view}`, HTMLButtonElement);
    tab.setAttribute('aria-selected', String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    find(`view-${view}`, HTMLDivElement).hidden = !isShown;
  }
  const input = inputOf(state);
  switch (state.view) {
    case 'files':
      showFile();
      return;
    case 'services': {
      const service = page.service.value;
      if (!output || service === '') return clearService(output ? 'The manifests hold no Service.' : '');
      asker.ask({ kind: 'service', input, service }, showService);
      return;
    }
    case 'trace': {
      if (!output) return showTrace({ kind: 'wrong', text: '' });
      const { from, to, protocol } = state;
      asker.ask({ kind: 'trace', input, packet: { from, to, protocol } }, showTrace);
      return;
    }
    case 'compare':
      page.secondBox.hidden = state.against !== 'manifests';
      if (!output) return showComparison({ kind: 'wrong', text: '' });
      if (state.second.length > mostManifests) {
        return showComparison({ kind: 'wrong', text: 'more than 8 MB of manifests: use the program kpc' });
      }
      asker.ask({ kind: 'compare', from: input, to: secondInputOf(state) }, showComparison);
  }
}

function showFile(): void {
  showTerminalText(page.content, contentOf(page.file.value) ?? '');
}

function contentOf(file: string): string | undefined {
  return output?.files.find(([name]) => name === file)?.[1];
}

function clearService(text: string): void {
  page.ways.replaceChildren(text);
  page.matrix.replaceChildren();
  page.description.replaceChildren();
}

let drawn: Extract<Answer, { kind: 'service' }> | undefined;

function showService(answer: Answer): void {
  drawn = answer.kind === 'service' ? answer : undefined;
  if (!drawn) return clearService(answer.kind === 'wrong' ? answer.text : '');
  showTerminalText(page.matrix, drawn.matrix);
  showTerminalText(page.description, drawn.text);
  drawAll();
}

function drawAll(): void {
  const width = Math.floor(Math.min(page.ways.clientWidth, 1000));
  // A view that is not shown has no width.
  if (!drawn || width === 0) return;
  const none = 'kube-proxy programs nothing for this Service.';
  page.ways.replaceChildren(...(drawn.ways.length === 0 ? [none] : drawn.ways.map((way) => drawWay(way, width))));
}

function showTrace(answer: Answer): void {
  URL.revokeObjectURL(shownPicture);
  const isTrace = answer.kind === 'trace';
  page.traceText.classList.toggle('wrap', !isTrace);
  page.tracePicture.hidden = !isTrace;
  if (isTrace) {
    shownPicture = URL.createObjectURL(new Blob([answer.svg], { type: 'image/svg+xml' }));
    page.tracePicture.src = shownPicture;
    page.tracePicture.alt = `The way of the packet from ${state.from} to ${state.to}; the text below says the same`;
  }
  showTerminalText(page.traceText, isTrace ? answer.text : answer.kind === 'wrong' ? answer.text : '');
}

function showComparison(answer: Answer): void {
  const isCompared = answer.kind === 'compare';
  showProblems(page.secondProblems, isCompared ? answer.diagnostics : [], page.second);
  showTerminalText(page.comparison, isCompared ? answer.text : answer.kind === 'wrong' ? answer.text : '');
}

function showFields(): void {
  page.manifests.value = state.manifests;
  page.second.value = state.second;
  page.mode.value = state.mode;
  page.release.value = state.release;
  page.assume.checked = state.assume;
  page.from.value = state.from;
  page.to.value = state.to;
  page.protocol.value = state.protocol;
  page.against.value = state.against;
  showGutter([]);
}

function listChoices(): void {
  const modes = modeList.map((mode) => [mode, mode] as const);
  const kubernetes = releaseList.toReversed().map((release) => [release, release] as const);
  fill(page.mode, modes, state.mode);
  fill(page.release, kubernetes, state.release);
  page.against.replaceChildren(
    group(
      'the same manifests in another mode',
      modeList.map((mode) => [mode, `mode ${mode}`]),
    ),
    group(
      'the same manifests by another release',
      kubernetes.map(([release]) => [release, `Kubernetes ${release}`]),
    ),
    group('other manifests', [['manifests', 'a second version of the manifests']]),
  );
}

function group(label: string, options: readonly (readonly [string, string])[]): HTMLOptGroupElement {
  const made = document.createElement('optgroup');
  made.label = label;
  made.append(...options.map(([value, text]) => new Option(text, value)));
  return made;
}

async function share(): Promise<void> {
  const packed = await packState(state);
  page.shared.hidden = false;
  if (packed === undefined) {
    page.link.value = '';
    page.linkNote.textContent = 'Too much for a link. Share the manifests as a file.';
    return;
  }
  const link = new URL(location.href);
  link.hash = packed;
  page.link.value = link.href;
  history.replaceState(null, '', link);
  page.link.select();
  const isCopied = await navigator.clipboard.writeText(link.href).then(
    () => true,
    () => false,
  );
  const what = 'What is behind # in a link is not sent to the server.';
  page.linkNote.textContent = isCopied ? `Copied. ${what}` : `Copy it from here. ${what}`;
}

async function readLink(): Promise<void> {
  const fragment = location.hash.slice(1);
  const read = fragment === '' ? undefined : await unpackState(fragment);
  if (read) state = read;
  else if (fragment !== '') {
    page.shared.hidden = false;
    page.linkNote.textContent = 'This link is broken or too long, so this is the example.';
  }
}

async function openFiles(files: readonly File[], editor: HTMLTextAreaElement): Promise<void> {
  if (files.reduce((sum, { size }) => sum + size, 0) > mostManifests) {
    page.problemsTitle.textContent = 'More than 8 MB of files: use the program kpc, which takes any size.';
    return;
  }
  const texts = await Promise.all(files.map((file) => file.text()));
  editor.value = texts.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join('---\n');
  editor.dispatchEvent(new Event('input'));
}

/** A file that is dropped anywhere else would take the place of the page. */
function acceptDrops(): void {
  addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.includes('Files') === true) event.preventDefault();
  });
  addEventListener('drop', (event) => {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void openFiles(files, event.target === page.second ? page.second : page.manifests);
  });
}

function afterPause(run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, pause);
  };
}

function download(): void {
  const { value: name } = page.file;
  const text = contentOf(name);
  if (text === undefined) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function copyFile(): Promise<void> {
  const button = find('copy', HTMLButtonElement);
  const isCopied = await navigator.clipboard.writeText(contentOf(page.file.value) ?? '').then(
    () => true,
    () => false,
  );
  button.textContent = isCopied ? 'Copied' : 'Not allowed here';
  setTimeout(() => (button.textContent = 'Copy'), 2_000);
}

/** Arrows move between tabs. */
function moveTab(event: KeyboardEvent, view: ViewName): void {
  const order = ['services', 'files', 'trace', 'compare'] as const;
  const steps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };
  const step = steps[event.key];
  if (step === undefined) return;
  const next = order[(order.indexOf(view) + step + order.length) % order.length] ?? view;
  show({ view: next });
  find(`tab-${next}`, HTMLButtonElement).focus();
  event.preventDefault();
}

function listen(): void {
  const typed = afterPause(() => change({ manifests: page.manifests.value }));
  page.manifests.addEventListener('input', () => {
    showGutter([]);
    typed();
  });
  page.manifests.addEventListener('scroll', () => (page.gutter.scrollTop = page.manifests.scrollTop));
  page.second.addEventListener(
    'input',
    afterPause(() => show({ second: page.second.value })),
  );
  acceptDrops();
  page.open.addEventListener('change', () => {
    void openFiles([...(page.open.files ?? [])], page.manifests);
    page.open.value = '';
  });
  page.node.addEventListener('change', () => change({ node: page.node.value }));
  page.mode.addEventListener('change', () =>
    change({ mode: modeList.find((each) => each === page.mode.value) ?? state.mode }),
  );
  page.release.addEventListener('change', () =>
    change({ release: releaseList.find((each) => each === page.release.value) ?? state.release }),
  );
  page.assume.addEventListener('change', () => change({ assume: page.assume.checked }));
  page.service.addEventListener('change', () => show({ service: page.service.value }));
  page.file.addEventListener('change', () => show({ file: page.file.value }));
  page.against.addEventListener('change', () => {
    const { value: against } = page.against;
    // Something to change is quicker to see than an empty field.
    const second = against === 'manifests' && state.second === '' ? state.manifests : state.second;
    page.second.value = second;
    show({ against, second });
  });
  const asked = afterPause(() =>
    show({
      from: page.from.value,
      to: page.to.value,
      protocol: (['tcp', 'udp', 'sctp', 'icmp'] as const).find((each) => each === page.protocol.value) ?? '',
    }),
  );
  page.packet.addEventListener('input', asked);
  page.packet.addEventListener('submit', (event) => {
    event.preventDefault();
    asked();
  });
  for (const view of views) {
    const tab = find(`tab-${view}`, HTMLButtonElement);
    tab.addEventListener('click', () => show({ view }));
    tab.addEventListener('keydown', (event) => moveTab(event, view));
  }
  find('restore', HTMLButtonElement).addEventListener('click', () => {
    update({ manifests: example, node: '', service: '', to: '' });
    showFields();
    compile();
  });
  find('share', HTMLButtonElement).addEventListener('click', () => void share());
  find('copy', HTMLButtonElement).addEventListener('click', () => void copyFile());
  find('download', HTMLButtonElement).addEventListener('click', download);
  addEventListener('hashchange', () => void startPage());
  new ResizeObserver(drawAll).observe(page.ways);
}

/** The browser keeps the page, so that it opens without a network. */
async function keepOffline(): Promise<void> {
  if (!('serviceWorker' in navigator) || !isSecureContext) return;
  try {
    await navigator.serviceWorker.register(scriptUrl('service-worker.js'));
    await navigator.serviceWorker.ready;
    page.offline.textContent = 'Works offline from now on.';
  } catch {
    // A browser may forbid it. Everything else works.
  }
}

async function startPage(): Promise<void> {
  await readLink();
  showFields();
  compile();
}

page.manifests.setAttribute('data-name', manifestsName);
listChoices();
listen();
await startPage();
await keepOffline();
