// docs/codes.md is made of fixtures/codes. UPDATE_DOCS=1 writes it.
import { expect, test } from 'vitest';
import { codes, failures } from '#codes';
import { failureCodes } from '../../src/base/findings/apply.ts';
import { findingCodes, severitiesOf, type FindingCode } from '../../src/base/findings/codes.ts';
import { failureExamples } from '../findings/failures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { expectWrittenPage, plainText } from '../support/written-page.ts';

const head = `# Codes

Each message about the input, and each error of kpc-apply that stops its work, ends with a code in brackets. Codes are stable; texts are not. \`kpc explain CODE\` prints what is
here, and \`kpc explain\` lists the codes. What errors, warnings and notes are is in [diagnostics.md](diagnostics.md).
`;

const applyHead = `## Codes of kpc-apply

Each is an error. kpc-apply prints what to do about it on the next line, as \`help:\`.
`;

function describeCode(code: FindingCode): string {
  const { meaning, shown, advice } = codes[code];
  const example = `\`\`\`text\n${shown.trimEnd()}\n\`\`\`\n`;
  const help = advice === undefined ? '' : `\nWhat to do: ${plainText(advice)}.\n`;
  return `### ${code}\n\n${capital(severitiesOf(code).join(' or '))}: ${plainText(meaning)}.\n\n${example}${help}`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

async function describeFailures(): Promise<readonly string[]> {
  const examples = await failureExamples();
  return failureCodes.map((code) => {
    const { meaning, advice } = failures[code];
    return `### kpc-apply ${code}\n\n${capital(plainText(meaning))}. ${capital(plainText(advice))}.\n\n\`\`\`text\nerror: ${examples.get(code) ?? ''} [${code}]\n\`\`\`\n`;
  });
}

test('docs/codes.md explains every code', async () => {
  const page = [
    head,
    '## Codes of kpc\n',
    ...findingCodes.map(describeCode),
    applyHead,
    ...(await describeFailures()),
  ].join('\n');
  await expectWrittenPage('docs/codes.md', page);
});

test('kpc explain lists the codes, and suggests the near one', async () => {
  const { stdout } = await runKpc(['explain']);
  expect(stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([...findingCodes, ...failureCodes, '']);
  const { meaning, advice } = failures['not-ready'];
  expect(stdout).toContain(meaning);
  const failure = await runKpc(['explain', 'not-ready']);
  expect(failure).toEqual({
    status: 0,
    stdout: `not-ready: error of kpc-apply\n${meaning}\n\nWhat to do: ${advice}.\n`,
    stderr: '',
  });
  const both = await runKpc(['explain', '[bad-bundle]']);
  expect(both.stdout).toMatch(/^bad-bundle: error\n/);
  expect(both.stdout).toContain(`\n\nbad-bundle: error of kpc-apply\n${failures['bad-bundle'].meaning}\n`);
  expect(await runKpc(['explain', 'bad-valeu'])).toEqual({
    status: 2,
    stdout: '',
    stderr: 'error: no message has the code bad-valeu [bad-call]\n  help: did you mean bad-value?\n',
  });
});
