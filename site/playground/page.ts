import { startAsker } from './ask.ts';
import { afterPause, fill, find, group, retype, suggest } from './dom.ts';
import { drawWay } from './draw-ways.ts';
import { example } from './example.ts';
import { countProblems, showGutter, showProblems } from './problems.ts';
import { allServices, type Answer, type Output, type ReadInput } from './questions.ts';
import { scriptUrl } from './script-url.ts';
import { keepState, keptState, packState, unpackState } from './share.ts';
import {
  inputOf,
  modeList,
  otherSide,
  releaseList,
  secondInputOf,
  startState,
  views,
  type PageState,
  type ViewName,
} from './state.ts';
import { showTerminalText } from './terminal-text.ts';

/** Limit on the characters that the page reads. The program kpc accepts more. */
const mostText = 8_000_000;
const tooMuch = 'More than 8 MB of text: use the program kpc, which takes any size.';
/** Milliseconds of work before the page says that it is busy. */
const patience = 1_000;

const page = {
  manifests: find('manifests', HTMLTextAreaElement),
  gutter: find('gutter', HTMLPreElement),
  open: find('open', HTMLInputElement),
  problems: find('problems', HTMLUListElement),
  problemsTitle: find('problems-title', HTMLHeadingElement),
  settings: find('settings', HTMLDivElement),
  node: find('node', HTMLSelectElement),
  mode: find('mode', HTMLSelectElement),
  release: find('release', HTMLSelectElement),
  assume: find('assume', HTMLInputElement),
  summary: find('summary', HTMLParagraphElement),
  busy: find('busy', HTMLParagraphElement),
  kept: find('kept', HTMLParagraphElement),
  service: find('service', HTMLSelectElement),
  ways: find('ways', HTMLDivElement),
  matrixBox: find('matrix-box', HTMLDivElement),
  matrix: find('matrix', HTMLPreElement),
  descriptionBox: find('description-box', HTMLDivElement),
  description: find('description', HTMLPreElement),
  file: find('file', HTMLSelectElement),
  content: find('content', HTMLPreElement),
  packet: find('packet', HTMLFormElement),
  from: find('from', HTMLInputElement),
  to: find('to', HTMLInputElement),
  protocol: find('protocol', HTMLSelectElement),
  inInterface: find('in-interface', HTMLInputElement),
  senders: find('senders', HTMLDataListElement),
  targets: find('targets', HTMLDataListElement),
  traceBox: find('trace-box', HTMLDivElement),
  tracePicture: find('trace-picture', HTMLImageElement),
  traceText: find('trace-text', HTMLPreElement),
  against: find('against', HTMLSelectElement),
  second: find('second', HTMLTextAreaElement),
  secondBox: find('second-box', HTMLDivElement),
  secondLabel: find('second-label', HTMLLabelElement),
  secondProblems: find('second-problems', HTMLUListElement),
  comparison: find('comparison', HTMLPreElement),
  shared: find('shared', HTMLDivElement),
  link: find('link', HTMLInputElement),
  linkNote: find('link-note', HTMLParagraphElement),
  results: find('results', HTMLElement),
  offline: find('offline', HTMLSpanElement),
};

let state: PageState = startState;
let kind: ReadInput['kind'] = 'manifests';
let output: Output | undefined;
/** The choices offered by the last input without errors. A choice that is no longer offered is dropped. */
let offered: Pick<Output, 'senders' | 'targets'> = { senders: [], targets: [] };
let shownPicture = '';
let shownWidth = 0;
let columns = 0;
let drawn: Extract<Answer, { kind: 'service' }> | undefined;
/** Whether the address bar holds the text. */
let isLinked = false;

const sayBusy = afterPause(() => {
  if (page.results.getAttribute('aria-busy') === 'true') page.busy.textContent = 'Still at work …';
}, patience);

const asker = startAsker((isBusy) => {
  page.results.setAttribute('aria-busy', String(isBusy));
  if (isBusy) sayBusy();
  else page.busy.textContent = '';
});

/** Reads and shows the text again, with these changes. */
function change(changes: Partial<PageState>): void {
  update(changes);
  readText();
}

function show(changes: Partial<PageState>): void {
  update(changes);
  showView();
}

function update(changes: Partial<PageState>): void {
  state = { ...state, ...changes };
  state = { ...state, against: kind === 'dump' ? state.against : otherSide(state, kind) };
  page.shared.hidden = true;
  // Remove the link of an earlier text, because a reload would bring that text back.
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  if (isLinked) writeLink();
  page.kept.hidden = keepState(state);
  listSides();
}

/** Updates the address bar of a page that was shared or opened by a link. */
const writeLink = afterPause(() => void putLink(state), 400);

async function putLink(packing: PageState): Promise<void> {
  const packed = await packState(packing);
  if (packed !== undefined && state === packing) history.replaceState(null, '', `#${packed}`);
}

function readText(): void {
  if (state.manifests.length > mostText) showRead({ kind: 'wrong', text: tooMuch });
  else asker.ask({ kind: 'read', input: inputOf(state) }, showRead);
}

function showRead(answer: Answer): void {
  const result = answer.kind === 'read' ? answer.result : undefined;
  const problems = result?.problems ?? [];
  output = result?.output;
  kind = result?.kind ?? kind;
  showProblems(page.problems, problems, page.manifests);
  page.problemsTitle.textContent = result ? countProblems(problems) : '';
  showGutter(page.gutter, page.manifests, problems);
  page.settings.hidden = kind === 'dump';
  find('tab-files', HTMLButtonElement).hidden = kind === 'dump';
  const nodes = result?.nodes ?? [];
  fill(page.node, nodes.length === 0 ? [['', 'any']] : nodes.map((name) => [name, name]), output?.node ?? state.node);
  const why = 'Nothing is shown until the errors are gone. They are listed below the text.';
  page.summary.textContent = output?.summary ?? (answer.kind === 'wrong' ? answer.text : why);
  listChoices(output);
  listSides();
  showView();
}

/** Fills the lists of choices. While there are errors, the lists are empty. */
function listChoices(found: Output | undefined): void {
  const files = (found?.files ?? []).map(([name]) => [name, name] as const);
  fill(page.file, files, files.some(([name]) => name === state.file) ? state.file : (found?.mainFile ?? ''));
  const services = found?.services ?? [];
  const isThere = state.service === allServices || services.includes(state.service);
  const usual = kind === 'dump' ? allServices : (services[0] ?? allServices);
  const choices = services.map((name) => [name, name] as const);
  fill(page.service, found ? [[allServices, 'all Services'], ...choices] : [], isThere ? state.service : usual);
  suggest(page.senders, found?.senders ?? []);
  suggest(page.targets, found?.targets ?? []);
  if (!found) return;
  const isGone = (name: string, of: 'senders' | 'targets') => offered[of].includes(name) && !found[of].includes(name);
  // Do not replace text while the user types.
  if (isGone(page.from.value, 'senders')) page.from.value = startState.from;
  const isFree = page.to.value === '' && document.activeElement !== page.to;
  if (isFree || isGone(page.to.value, 'targets')) page.to.value = found.targets[0] ?? '';
  const from = isGone(state.from, 'senders') ? startState.from : state.from;
  const to = isGone(state.to, 'targets') ? '' : state.to;
  if (from !== state.from || to !== state.to) {
    state = { ...state, from, to };
    page.kept.hidden = keepState(state);
  }
  offered = found;
}

/** Returns the view in front. A dump has no files. */
function frontView(): ViewName {
  return kind === 'dump' && state.view === 'files' ? 'services' : state.view;
}

function showTabs(front: ViewName): void {
  for (const view of views) {
    const isShown = view === front;
    const tab = find(`tab-${view}`, HTMLButtonElement);
    tab.setAttribute('aria-selected', String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    find(`view-${view}`, HTMLDivElement).hidden = !isShown;
  }
}

function showView(): void {
  const front = frontView();
  showTabs(front);
  const input = inputOf(state);
  switch (front) {
    case 'files':
      return showTerminalText(page.content, contentOf(page.file.value) ?? '');
    case 'services':
      if (!output) return showService({ kind: 'wrong', text: '' });
      columns = shownColumns();
      return asker.ask({ kind: 'service', input, service: page.service.value, columns }, showService);
    case 'trace':
      return askTrace();
    case 'compare':
      return askComparison();
  }
}

function contentOf(file: string): string | undefined {
  return output?.files.find(([name]) => name === file)?.[1];
}

function showService(answer: Answer): void {
  // Keep the answer, because a new window width draws it again.
  drawn = answer.kind === 'service' ? answer : undefined;
  showTerminalText(page.matrix, drawn?.matrix ?? '');
  page.matrixBox.hidden = (drawn?.matrix ?? '') === '';
  showTerminalText(page.description, drawn?.text ?? '');
  page.descriptionBox.hidden = (drawn?.text ?? '') === '';
  // Sentences may be wrapped, but the columns of a table must not be.
  page.description.classList.toggle('wrap', page.service.value !== allServices);
  if (!drawn) page.ways.replaceChildren(answer.kind === 'wrong' ? answer.text : '');
  drawWays();
}

function drawWays(): void {
  const width = Math.floor(Math.min(page.ways.clientWidth, 1000));
  // A hidden view has no width, so draw nothing.
  if (!drawn || width === 0) return;
  page.ways.replaceChildren(...drawn.ways.map((way) => drawWay(way, width)));
}

function askTrace(): void {
  if (!output) return showTrace({ kind: 'wrong', text: '' });
  const { protocol, inInterface } = state;
  const packet = { from: page.from.value, to: page.to.value, protocol, inInterface };
  shownWidth = pictureWidth();
  asker.ask({ kind: 'trace', input: inputOf(state), packet, width: shownWidth }, showTrace);
}

/** Returns how many characters of output fit side by side. A narrower screen scrolls, because a table needs some room. */
function shownColumns(): number {
  const [padding, character] = [2 * 33, 7.6];
  return Math.max(80, Math.floor((Math.floor(page.results.clientWidth / 20) * 20 - padding) / character));
}

/** Returns the picture's width in steps, so that a scroll bar that appears or disappears does not change it. */
function pictureWidth(): number {
  const room = Math.floor(page.traceBox.clientWidth / 20) * 20;
  return Math.min(960, Math.max(240, room));
}

function showTrace(answer: Answer): void {
  URL.revokeObjectURL(shownPicture);
  const isTrace = answer.kind === 'trace';
  page.traceBox.classList.toggle('empty', !isTrace);
  if (isTrace) {
    shownPicture = URL.createObjectURL(new Blob([answer.svg], { type: 'image/svg+xml' }));
    page.tracePicture.src = shownPicture;
    page.tracePicture.alt = `The way of the packet from ${page.from.value} to ${page.to.value}; the text below says the same`;
  } else page.tracePicture.removeAttribute('src');
  page.tracePicture.hidden = !isTrace;
  showTerminalText(page.traceText, isTrace || answer.kind === 'wrong' ? answer.text : '');
}

function askComparison(): void {
  const against = otherSide(state, kind);
  page.secondBox.hidden = against !== 'manifests';
  const isEmpty = against === 'manifests' && state.second.trim() === '';
  if (!output || isEmpty || state.second.length > mostText) {
    const why = isEmpty ? 'Paste what to compare with above.' : tooMuch;
    return showComparison({ kind: 'wrong', text: output ? why : '' });
  }
  asker.ask({ kind: 'compare', from: inputOf(state), to: secondInputOf(state, against) }, showComparison);
}

function showComparison(answer: Answer): void {
  const isCompared = answer.kind === 'compare';
  showProblems(page.secondProblems, isCompared ? answer.problems : [], page.second);
  showTerminalText(page.comparison, isCompared || answer.kind === 'wrong' ? answer.text : '');
}

function showFields(): void {
  page.manifests.value = state.manifests;
  page.second.value = state.second;
  fill(
    page.mode,
    modeList.map((mode) => [mode, mode]),
    state.mode,
  );
  fill(
    page.release,
    releaseList.toReversed().map((release) => [release, release]),
    state.release,
  );
  page.assume.checked = state.assume;
  page.from.value = state.from;
  page.to.value = state.to;
  page.protocol.value = state.protocol;
  page.inInterface.value = state.inInterface;
  listSides();
  showGutter(page.gutter, page.manifests, []);
  showTabs(frontView());
}

/** Lists what to compare with, without the present mode and release. */
function listSides(): void {
  const modes = modeList.filter((mode) => mode !== state.mode);
  const kubernetes = releaseList.toReversed().filter((release) => release !== state.release);
  const settings = [
    group(
      'the same manifests in another mode',
      modes.map((mode) => [mode, `mode ${mode}`]),
    ),
    group(
      'the same manifests by another release',
      kubernetes.map((release) => [release, `Kubernetes ${release}`]),
    ),
  ];
  const isDump = kind === 'dump';
  const another = isDump ? 'manifests, or another dump' : 'another version, or a dump of a node';
  page.against.replaceChildren(...(isDump ? [] : settings), group('another text', [['manifests', another]]));
  page.against.value = otherSide(state, kind);
  page.secondLabel.textContent = isDump
    ? "The cluster's manifests, which also name the dump's Services; or another dump"
    : 'Another version of the manifests, or what a node prints';
}

async function share(): Promise<void> {
  const packed = await packState(state);
  page.shared.hidden = false;
  if (packed === undefined) {
    page.link.value = '';
    page.linkNote.textContent = 'Too much for a link. Share the text as a file.';
    return;
  }
  const link = new URL(location.href);
  link.hash = packed;
  page.link.value = link.href;
  history.replaceState(null, '', link);
  isLinked = true;
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
  isLinked = read !== undefined;
  if (read) state = read;
  else if (fragment === '') state = keptState() ?? state;
  else {
    page.shared.hidden = false;
    page.linkNote.textContent = 'This link is broken or too long, so this is the example.';
  }
  state = { ...state, against: otherSide(state, 'manifests') };
}

async function openFiles(files: readonly File[], editor: HTMLTextAreaElement): Promise<void> {
  if (files.reduce((sum, { size }) => sum + size, 0) > mostText) {
    page.problemsTitle.textContent = tooMuch;
    return;
  }
  const texts = await Promise.all(files.map((file) => file.text()));
  const areYaml = files.every(({ name }) => /\.(?:ya?ml|json)$/i.test(name));
  retype(editor, texts.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join(areYaml ? '---\n' : ''));
  editor.dispatchEvent(new Event('input'));
}

/** Accepts files dropped anywhere, because the browser would replace the page by the file. */
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

/** Moves between tabs with the arrow keys. */
function moveTab(event: KeyboardEvent, view: ViewName): void {
  const order = views.filter((each) => !find(`tab-${each}`, HTMLButtonElement).hidden);
  const steps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };
  const step = steps[event.key];
  if (step === undefined) return;
  const next = order[(order.indexOf(view) + step + order.length) % order.length] ?? view;
  show({ view: next });
  find(`tab-${next}`, HTMLButtonElement).focus();
  event.preventDefault();
}

function listenToTexts(): void {
  const typed = afterPause(() => change({ manifests: page.manifests.value }));
  page.manifests.addEventListener('input', () => {
    showGutter(page.gutter, page.manifests, []);
    typed();
  });
  page.manifests.addEventListener('scroll', () => (page.gutter.scrollTop = page.manifests.scrollTop));
  const secondTyped = afterPause(() => {
    const { value: second } = page.second;
    // For a dump, read the input again, because these manifests name the dump's Services.
    if (kind === 'dump') change({ second });
    else show({ second });
  });
  page.second.addEventListener('input', secondTyped);
  acceptDrops();
  page.open.addEventListener('change', () => {
    void openFiles([...(page.open.files ?? [])], page.manifests);
    page.open.value = '';
  });
  find('restore', HTMLButtonElement).addEventListener('click', () => {
    page.to.value = '';
    update({ node: '', service: '', to: '' });
    retype(page.manifests, example);
    change({ manifests: example });
  });
}

function listenToChoices(): void {
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
    // Begin with a copy of the text, because changing a text is easier than filling an empty field.
    const second = against === 'manifests' && state.second === '' ? state.manifests : state.second;
    page.second.value = second;
    show({ against, second });
  });
  const asked = afterPause(() =>
    show({
      from: page.from.value,
      to: page.to.value,
      inInterface: page.inInterface.value,
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
}

function listen(): void {
  listenToTexts();
  listenToChoices();
  find('share', HTMLButtonElement).addEventListener('click', () => void share());
  find('copy', HTMLButtonElement).addEventListener('click', () => void copyFile());
  find('download', HTMLButtonElement).addEventListener('click', download);
  addEventListener('hashchange', () => void startPage());
  const redraw = new ResizeObserver(() => {
    drawWays();
    if (frontView() === 'trace' && pictureWidth() !== shownWidth) askTrace();
    if (frontView() === 'services' && shownColumns() !== columns) showView();
  });
  redraw.observe(page.results);
}

/** Lets the browser keep the page, so that it opens without a network. */
async function keepOffline(): Promise<void> {
  if (!('serviceWorker' in navigator) || !isSecureContext) return;
  try {
    await navigator.serviceWorker.register(scriptUrl('service-worker.js'));
    await navigator.serviceWorker.ready;
    page.offline.textContent = 'Works offline from now on.';
  } catch {
    // Ignore the error if the browser forbids this, because everything else works.
  }
}

async function startPage(): Promise<void> {
  await readLink();
  showFields();
  readText();
}

listen();
await startPage();
await keepOffline();
