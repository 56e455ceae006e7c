import type { CommandResult } from '../../src/apply/node/host.ts';

/** A chain or set as it is listed: what it is, and what is in it. */
interface Part {
  readonly head: string;
  readonly properties: readonly string[];
  /** Rules in their order, or elements by key. */
  lines: readonly string[];
}

/** "ip kube-proxy" → "chain services" → what is in it. */
export type FakeNft = Map<string, Map<string, Part>>;

const ok = (stdout = ''): CommandResult => ({ kind: 'ended', status: 0, stdout, stderr: '' });
const wrong = (stderr: string): CommandResult => ({ kind: 'ended', status: 1, stdout: '', stderr });

/** Of nft what kpc-apply asks for: `list table`, `list ruleset`, and a transaction, which is made whole or not at all. */
export function runNft(tables: FakeNft, args: readonly string[], stdin: string): CommandResult {
  if (args.at(-1) === 'ruleset') return listRuleset(tables);
  if (args.includes('list')) return listTable(tables, args.slice(-2).join(' '));
  const draft = new Map([...tables].map(([name, parts]) => [name, new Map(parts)]));
  const fault = change(draft, stdin);
  if (fault !== undefined) return wrong(`/dev/stdin:${fault}:1-9: Error: Could not process rule: File exists\n`);
  if (args.includes('-c')) return ok();
  tables.clear();
  for (const [name, parts] of draft) tables.set(name, parts);
  return ok();
}

function listRuleset(tables: FakeNft): CommandResult {
  const lists = [...tables.keys()].map((name) => listTable(tables, name));
  return ok(lists.map((each) => (each.kind === 'ended' ? each.stdout : '')).join(''));
}

function listTable(tables: FakeNft, name: string): CommandResult {
  const parts = tables.get(name);
  if (!parts) return wrong(`Error: No such file or directory\nlist table ${name}\n`);
  return ok(`table ${name} {\n${[...parts.values()].map(formatPart).join('')}}\n`);
}

function formatPart({ head, properties, lines }: Part): string {
  const isChain = head.startsWith('chain ');
  const elements = lines.length === 0 ? [] : [`elements = { ${lines.join(', ')} }`];
  return [
    `\t${head} {`,
    ...[...properties, ...(isChain ? lines : elements)].map((line) => `\t\t${line}`),
    '\t}\n',
  ].join('\n');
}

export function dumpNft(tables: FakeNft): string {
  return [...tables.keys()]
    .toSorted()
    .map((name) => {
      const parts = [...(tables.get(name)?.values() ?? [])];
      const sorted = parts.map((part) =>
        formatPart(part.head.startsWith('chain ') ? part : { ...part, lines: part.lines.toSorted() }),
      );
      return `table ${name}\n${sorted.toSorted().join('')}`;
    })
    .join('');
}

/** Gives the number of the line that the kernel would not take. */
function change(tables: FakeNft, input: string): number | undefined {
  const lines = input.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line.trim() === '') continue;
    const block = /^table (\S+ \S+) \{$/.exec(line);
    if (block) {
      const end = lines.indexOf('}', at);
      if (end < 0) return lines.length;
      readTable(tableOf(tables, block[1] ?? ''), lines.slice(at + 1, end));
      at = end;
    } else if (!changeByLine(tables, line)) return at + 1;
  }
  return undefined;
}

function tableOf(tables: FakeNft, name: string): Map<string, Part> {
  const parts = tables.get(name) ?? new Map<string, Part>();
  tables.set(name, parts);
  return parts;
}

/** What formatTables writes inside of a table. */
function readTable(parts: Map<string, Part>, lines: readonly string[]): void {
  for (let at = 0; at < lines.length; at++) {
    const head = /^\t((?:chain|set|map) \S+) \{$/.exec(lines[at] ?? '')?.[1];
    if (head === undefined) continue;
    const end = lines.indexOf('\t}', at);
    const own = lines.slice(at + 1, end).map((line) => line.trim());
    const isElement = (i: number) => own.indexOf('elements = {') >= 0 && i > own.indexOf('elements = {');
    const isProperty = (line: string) => /^(type|flags|timeout|size|comment|policy) /.test(line);
    const inside = own.filter((line) => line !== 'elements = {' && line !== '}');
    const elements = own.filter((line, i) => isElement(i) && line !== '}').map((line) => line.replace(/,$/, ''));
    const isChain = head.startsWith('chain ');
    parts.set(head, {
      head,
      properties: inside.filter(isProperty),
      lines: isChain ? inside.filter((line) => !isProperty(line)) : elements,
    });
    at = end;
  }
}

function changeByLine(tables: FakeNft, line: string): boolean {
  const [, verb = '', kind = '', table = '', rest = ''] =
    /^(?:(add|delete|flush) )?(table|chain|set|map|rule|element) (\S+ \S+) ?(.*)$/.exec(line) ?? [];
  if (kind === 'table') {
    if (verb === 'delete') return tables.delete(table);
    tableOf(tables, table);
    return true;
  }
  const parts = tables.get(table);
  const [name = ''] = rest.split(' ');
  const body = rest.slice(name.length + 1);
  if (!parts) return false;
  const holder = parts.get(`chain ${name}`) ?? parts.get(`set ${name}`) ?? parts.get(`map ${name}`);
  const put = (lines: readonly string[]) => holder !== undefined && !!parts.set(holder.head, { ...holder, lines });
  switch (`${verb} ${kind}`) {
    case 'add chain':
    case 'add set':
    case 'add map': {
      const head = `${kind} ${name}`;
      const properties = body
        .replace(/^\{ ?/, '')
        .replace(/ ?\}$/, '')
        .split(/(?<=;) /)
        .filter(Boolean);
      const isBase = properties[0]?.startsWith('type ') && kind === 'chain';
      const [first = '', second = '', ...others] = properties;
      if (!parts.has(head)) {
        const texts = isBase ? [`${first} ${second}`, ...others] : properties.map((text) => text.replace(/;$/, ''));
        parts.set(head, { head, properties: texts, lines: [] });
      }
      return true;
    }
    case 'add rule':
      return put([...(holder?.lines ?? []), body]);
    case 'flush chain':
      return put([]);
    case 'delete chain':
    case 'delete set':
    case 'delete map':
      return (
        !isUsed(parts, name) &&
        (kind === 'chain' ? holder?.lines.length === 0 : true) &&
        parts.delete(`${kind} ${name}`)
      );
    case 'add element': {
      const element = body.replace(/^\{ /, '').replace(/ \}$/, '');
      const known = holder?.lines.find((each) => keyOf(each) === keyOf(element));
      if (known !== undefined) return known === element;
      return put([...(holder?.lines ?? []), element]);
    }
    case 'delete element': {
      const key = body.replace(/^\{ /, '').replace(/ \}$/, '');
      const left = (holder?.lines ?? []).filter((each) => keyOf(each) !== key);
      return left.length < (holder?.lines.length ?? 0) && put(left);
    }
    default:
      return false;
  }
}

function keyOf(element: string): string {
  return element.replace(/ (?:comment|:) .*$/, '');
}

function isUsed(parts: ReadonlyMap<string, Part>, name: string): boolean {
  return [...parts.values()].some(({ lines }) =>
    lines.some((line) =>
      new RegExp(`(?:jump|goto|@)\\s?${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?=$|[ ,])`).test(line),
    ),
  );
}
