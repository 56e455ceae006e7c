// The table of releases in docs/differences.md is made of what the compiler goes by. UPDATE_DOCS=1 writes it.
import { test } from 'vitest';
import type { BehaviourChange } from '../../src/kube-proxy/releases.ts';
import { behaviourChanges, kubeProxyVersions, releases } from '../../src/kube-proxy/releases.ts';
import { readPage } from '../support/markdown.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const begin = '<!-- releases: written by npm run docs -->';
const end = '<!-- end of releases -->';

/** From when on kube-proxy behaves so, and what turns it on or off. */
function describeSince({ since, gate }: BehaviourChange): string {
  const parts = [...(since ? [since] : []), ...(gate ? [`feature gate \`${gate.name}\``] : [])];
  return parts.join(', ');
}

function releaseTables(): string {
  const changes: readonly BehaviourChange[] = Object.values(behaviourChanges);
  return [
    `Compared with the kube-proxy of each: ${releases.map((release) => kubeProxyVersions[release]).join(', ')}.`,
    '',
    '| since | kube-proxy | before, or without it, kube-proxy |',
    '| --- | --- | --- |',
    ...changes.map((change) => tableRow([describeSince(change), plainText(change.after), plainText(change.before)])),
  ].join('\n');
}

test('docs/differences.md lists what differs between releases', async () => {
  const page = readPage('docs/differences.md');
  const [before = '', rest = ''] = page.split(begin);
  const [, after = ''] = rest.split(end);
  await expectWrittenPage('docs/differences.md', `${before}${begin}\n\n${releaseTables()}\n\n${end}${after}`);
});
