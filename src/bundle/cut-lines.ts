/** A line of a tool's file, with the lines that open what it stands in: "*nat" or "table ip kube-proxy {". */
interface PlacedLine {
  readonly line: string;
  readonly inside: readonly string[];
  readonly kind: 'opens' | 'closes' | 'plain';
}

/**
 * The lines of a tool's file that another text of the same file does not hold in the same place, with the lines around them
 * that open and close their table; '' where nothing is left.
 */
export function cutLines(text: string, other: ReadonlySet<string>): string {
  const kept: string[] = [];
  const open: { readonly line: string; readonly at: number }[] = [];
  for (const placed of placeLines(text)) {
    switch (placed.kind) {
      case 'opens':
        open.push({ line: placed.line, at: kept.push(placed.line) });
        break;
      case 'closes': {
        const block = open.pop();
        // A table with nothing of its own in it is left out.
        if (block && kept.length === block.at) kept.pop();
        else kept.push(placed.line);
        break;
      }
      case 'plain':
        if (!other.has(nameOf(placed))) kept.push(placed.line);
        break;
    }
  }
  return kept.map((line) => `${line}\n`).join('');
}

/** The lines of a text, to cut another one by. */
export function indexLines(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const placed of placeLines(text)) names.add(nameOf(placed));
  return names;
}

function nameOf({ line, inside }: PlacedLine): string {
  return [...inside, line].join('\n');
}

function* placeLines(text: string): Generator<PlacedLine> {
  const inside: string[] = [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    if (line.startsWith('*') || line.endsWith('{')) {
      yield { line, inside, kind: 'opens' };
      inside.push(line);
    } else if (line === 'COMMIT' || line.trim() === '}') {
      inside.pop();
      yield { line, inside, kind: 'closes' };
    } else {
      yield { line, inside, kind: 'plain' };
    }
  }
}
