// The drawings of a terminal show what kpc prints. UPDATE_DOCS=1 draws them again.
import { expect, test } from 'vitest';
import { drawRecording, recordings } from '../../scripts/record-terminal.mjs';
import { expectWritten } from '../support/written-page.ts';

test.each(recordings)('$file shows what kpc prints', async (recording) => {
  const drawing = await drawRecording(recording);
  expect(drawing).toContain('default/nginx');
  expectWritten(recording.file, drawing);
});
