// The tables of codes in docs/diagnostics.md are made of the programs' own tables, with an example of each code from the
// fixtures and the inputs of test/diagnostics. UPDATE_DOCS=1 writes them.
import { test } from 'vitest';
import { failureMeanings } from '../../src/apply/state/failure.ts';
import { diagnosticCodes, entryOf } from '../../src/diagnostics/codes.ts';
import { failureExamples } from '../diagnostics/failures.ts';
import { toldByFixtures, toldByInputs } from '../diagnostics/tripped.ts';
import { readPage } from '../support/markdown.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const begin = '<!-- codes: written by npm run docs -->';
const end = '<!-- end of codes -->';

/** How long an example may be: some texts list all that could be meant. */
const longest = 240;

async function diagnosticTable(): Promise<string> {
  const examples = new Map([...(await toldByInputs()), ...toldByFixtures()]);
  const rows = diagnosticCodes.map((code) => {
    const { severity, meaning } = entryOf(code);
    const severities = typeof severity === 'string' ? severity : severity.among.join(', ');
    return tableRow([`\`${code}\``, severities, plainText(meaning), plainText(cut(examples.get(code)?.text ?? ''))]);
  });
  return ['| code | severity | what it means | for example |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

async function failureTable(): Promise<string> {
  const examples = await failureExamples();
  const rows = Object.entries(failureMeanings).map(([code, meaning]) =>
    tableRow([`\`${code}\``, plainText(meaning), plainText(cut(examples.get(code) ?? ''))]),
  );
  return ['| code | what it means | for example |', '| --- | --- | --- |', ...rows].join('\n');
}

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

test('docs/diagnostics.md lists every code', async () => {
  const page = readPage('docs/diagnostics.md');
  const [before = '', rest = ''] = page.split(begin);
  const [, after = ''] = rest.split(end);
  const tables = `${await diagnosticTable()}\n\nkpc-apply has codes of its own. Each is an error, with what to do about it:\n\n${await failureTable()}`;
  await expectWrittenPage('docs/diagnostics.md', `${before}${begin}\n\n${tables}\n\n${end}${after}`);
});
