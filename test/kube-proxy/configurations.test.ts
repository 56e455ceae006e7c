import { wordsOf } from '../../src/say/words/words.ts';
import { expect, test } from 'vitest';
import { isError } from '../../src/base/findings/finding.ts';
import { readConfig, resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import { readConfigurations } from './configurations.mjs';

/** kpc refuses these on purpose, where kube-proxy starts: fields that only Kubernetes 1.25 to 1.30 read, and keys that are there twice. */
const strict: readonly RegExp[] = [/^(?:portRange|udpIdleTimeout):/, /^(mode): .*\n\1:/, /(syncPeriod).*\1/];

const recorded = readConfigurations().flatMap(({ text, refusals }) =>
  Object.entries(refusals).map(
    ([release, refusal]) => [release as Release, text.split('\n').slice(2).join('\n').trim(), refusal, text] as const,
  ),
);

test.each(recorded)('Kubernetes %s with %s', (release, lines, refusal, text) => {
  const read = readConfig(new TextFile('config.yaml', text));
  const errors = [...read.diagnostics, ...resolveSettings(read.config, {}, release).diagnostics].filter(isError);
  if (refusal === '' && strict.some((pattern) => pattern.test(lines))) return;
  expect(
    errors.length > 0 ? 'refused' : 'starts',
    `${refusal} ${errors.map((each) => wordsOf(each).text).join()}`,
  ).toBe(refusal === '' ? 'starts' : 'refused');
});
