import type { Host } from '../../src/apply/node/host.ts';
import { checkPrinted } from '../support/printed-json.ts';
import { main } from '../../src/cli/kpc-apply/main.ts';

export interface ApplyRun {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Runs kpc-apply on a host, without a terminal. */
export async function callApply(host: Host, ...args: readonly string[]): Promise<ApplyRun> {
  let out = '';
  let err = '';
  const status = await main(args, {
    host,
    terminal: {
      out: async (text) => void (out += text),
      err: async (text) => void (err += text),
      status: async () => {},
      readStdin: async () => '',
      colour: { out: false, err: false },
      interactive: false,
    },
  });
  checkPrinted('kpc-apply', args, out);
  return { status, out, err };
}
