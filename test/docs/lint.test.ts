// docs/lint.md: what kpc lint does, with commands that are run here, and its rules, made of fixtures/codes. UPDATE_DOCS=1 writes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { codes } from '#codes';
import { codesFolder } from '../../scripts/codes-module.mjs';
import { severitiesOf, type FindingCode } from '../../src/base/findings/codes.ts';
import { ruleCodes } from '../../src/ask/lint/rules.ts';
import { runKpc } from '../support/run-kpc.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const rules = ruleCodes.toSorted();

/** A command and what it prints, as a terminal shows them. */
async function shown(command: string): Promise<string> {
  const [, ...words] = command.split(' ');
  const { stdout, stderr } = await runKpc(words);
  return `\`\`\`text\n$ ${command}\n${stderr}${stdout}\`\`\`\n`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function describeRule(code: FindingCode): string {
  const { meaning, advice, why = '', reports } = codes[code];
  const [first = '', ...more] = readFileSync(join(codesFolder, code, 'said.txt'), 'utf8')
    .trimEnd()
    .split('\n');
  const help = more.find((line) => line.startsWith('  help: '));
  const links = reports?.map((link) => `<${link}>`).join(', ');
  return [
    `### ${code}\n`,
    `${capital(severitiesOf(code).join(' or '))}: ${plainText(meaning)}. ${plainText(why)}\n`,
    `\`\`\`text\n${[first.replace(/^in\.yaml:\d+:\d+: /, ''), ...(help === undefined ? [] : [help])].join('\n')}\n\`\`\`\n`,
    advice === undefined ? '' : `What to do: ${plainText(advice)}.\n`,
    `[Example](codes.md#${code})${links === undefined ? '' : `. Reports and documents: ${links}`}\n`,
  ].join('\n');
}

const formats = [
  ['`text`', 'each finding with its line and what to do, then the count'],
  ['`json`', 'all of it for programs: [its schema](../schemas/lint.schema.json)'],
  ['`github`', 'annotations on the lines of a pull request, from any workflow'],
  ['`sarif`', 'SARIF 2.1.0, for code scanning of GitHub, Azure DevOps and others'],
  ['`gitlab`', "GitLab's report of code quality"],
  ['`junit`', 'test cases, which fail where there are errors'],
] as const;

test('docs/lint.md shows what kpc lint does, and explains every rule', async () => {
  const page = `# kpc lint

\`kpc lint\` reports what an API server or kube-proxy would refuse in manifests, and valid Services that do not do what they seem to.
\`kpc lint\` compiles the Services for every Node in the input, as kube-proxy would. A finding about packets has a line \`trace:\`, with a command that
traces one such packet. kpc only reports the finding if this packet confirms it.

${await shown('kpc lint fixtures/lint --proxy-mode iptables')}
\`kpc lint\` reads what other commands read: files, folders, \`-\` for what \`helm template\` or \`kubectl kustomize\` prints, or a whole cluster. More input
means more findings: without Nodes, \`kpc lint\` reports nothing about nodes, without EndpointSlices or Pods nothing about endpoints, and without
kube-proxy's configuration (or flags) nothing about settings. If nothing names kube-proxy's mode, \`kpc lint\` reports only what is true in IPVS, iptables
and nftables mode alike: name your mode with \`--proxy-mode\` or in kpc.yaml to see the rest.

\`\`\`text
$ kubectl get services,endpointslices,nodes,pods -A -o yaml | kpc lint - --config kube-proxy.yaml
\`\`\`

| exit status | meaning                                            |
| ----------- | -------------------------------------------------- |
| 0           | no errors                                          |
| 1           | errors; with \`--strict\` also warnings              |
| 2           | the command line is wrong, or a file cannot be read |

After an error the rules do not run, because the faulty object might be a Service. \`--skip-invalid\` leaves out faulty objects.

## Output

| \`--output\` | prints |
| --- | --- |
${formats.map((row) => tableRow(row)).join('\n')}

\`github\`, \`sarif\` and \`gitlab\` give paths from the top of the repository, wherever kpc runs in it, also for REVISION:PATH. In these formats,
findings in standard input have no line, so name the files instead.

In a workflow of GitHub:

\`\`\`yaml
- run: kpc lint deploy --output sarif > kpc.sarif
- uses: github/codeql-action/upload-sarif@v3
  if: always()
  with: { sarif_file: kpc.sarif }
\`\`\`

In a pipeline of GitLab:

\`\`\`yaml
lint:
  script: kpc lint deploy --output gitlab > kpc.json
  artifacts: { reports: { codequality: kpc.json } }
\`\`\`

A fingerprint depends on the code and on what the finding is about, not on lines: it stays the same when its file changes elsewhere.

## Accepting a finding

- For one object: the annotation \`kpc.dev/ignore: CODE\` on the object at the finding's lines, or on a Service that it names; separate several codes by commas.
- For a repository: \`ignore\` in [kpc.yaml](kpc-yaml.md), for all Services or for one, with the reason.
- For one run: \`--ignore CODE\`.

\`\`\`yaml
lint:
  ignore:
    - { code: open-node-port, service: shop/shop, reason: a firewall closes node ports }
    - { code: external-ips, reason: gone before 1.40 }
\`\`\`

The last line of the text counts ignored findings, and JSON lists them. The other formats leave ignored findings out: GitHub's code scanning does not read
the \`suppressions\` of SARIF, and would open an alert for each of them. An ignore that matches nothing is a finding of its own.

An error cannot be accepted. Instead, \`--skip-invalid\` leaves out its object, and \`--exclude\` its file.

## Rules

\`kpc lint\` also reports the errors and warnings that all commands report: [every code](codes.md).

${rules.map(describeRule).join('\n')}`;
  await expectWrittenPage('docs/lint.md', page);
});
