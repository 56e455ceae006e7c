// The pictures of docs are drawn from data, and name what kpc compiles. UPDATE_DOCS=1 draws them again.
import { expect, test } from 'vitest';
import { drawPacketWay, drawPipeline, packetWays, pipelineFile } from '../../scripts/draw-packet-ways.mjs';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixturesFolder } from '../support/fixtures.ts';
import { compile } from '../../src/library/index.ts';
import { answerTrace } from '../../src/say/trace-answer.ts';
import { drawWays } from '../../src/say/draw-way.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { expectWritten } from '../support/written-page.ts';

/** All rules that these fixtures compile to in a mode. */
function compiledText(mode: string): string {
  const fixtures = ['quickstart', 'loadbalancer-local', 'loadbalancer-source-ranges', 'session-affinity'];
  const folders = fixtures.map((name) => join(fixturesFolder, name, `expected-${mode}`));
  return folders
    .flatMap((folder) => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')))
    .join('\n');
}

test.each(packetWays)('$file shows what packets pass, by its name', (way) => {
  expectWritten(way.file, drawPacketWay(way));
  const text = compiledText(way.mode);
  const all = way.stops.flatMap(({ parts }) => parts);
  const inTexts = all.flatMap((part) => part.text.match(/KUBE-[A-Z-]*[A-Z]|hairpin-connections/g) ?? []);
  const names = [...all.map(({ name }) => name.replace('…', '')), ...inTexts].filter(
    (name) => name !== '' && !name.includes(' '),
  );
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !text.includes(name))).toEqual([]);
});

test('the pipeline is drawn', () => {
  expectWritten(pipelineFile, drawPipeline());
});

test('a trace is drawn as kpc trace draws it, narrow enough for the first screen of the site', () => {
  const manifests = { 'svc.yaml': readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8') };
  const { bundle } = compile({ manifests, proxyMode: 'nftables' });
  const found = bundle && answerTrace({ from: 'pod', to: 'svc/nginx' }, sceneOf(bundle.side));
  if (!found || !('ways' in found)) throw new Error('no trace');
  expectWritten('docs/trace.svg', drawWays(found.ways, 440));
});
