// The drawings of a terminal show what kpc prints. UPDATE_DOCS=1 draws them again.
import { expect, test } from 'vitest';
import { drawRecording, recordings } from '../../scripts/record-terminal.mjs';
import { expectWritten } from '../support/written-page.ts';

test.each(recordings)('$file shows what kpc prints', async (recording) => {
  const drawing = await drawRecording(recording);
  expect(drawing).toContain('default/nginx');
  // The column of text of a README, and of the site: a wider picture is shrunk.
  expect(Number(/width="(\d+)"/.exec(drawing)?.[1])).toBeLessThanOrEqual(720);
  expectWritten(recording.file, drawing);
});
