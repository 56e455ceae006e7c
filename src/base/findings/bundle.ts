import type { SpecialUse } from '../../kernel/address.ts';
import type { LineFault } from '../../kernel/lines.ts';
import type { Unread } from '../unread.ts';
import type { JsonFault } from '../json/check.ts';
import type { By, None, Numbers, Strings } from './rows.ts';

export interface InFile {
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

export type BundleFault = InFile &
  (
    | JsonFault
    | By<
        'problem',
        {
          golden: None;
          misnamed: None;
          version: Numbers<'reads'> & { readonly found?: number | undefined };
          'merge-conflict': None;
          'no-file': Strings<'name'>;
          'stray-file': Strings<'name'>;
          changed: Strings<'name' | 'found' | 'expected'>;
          'bad-line': { readonly reason: LineFault };
          unread: { readonly reason: Unread };
          /** A value that kpc never writes. `must` is the requirement in the setting's row. */
          value: Strings<'name'> & { readonly must?: string | undefined };
          /** Ports or health checks name a Service that is missing. */
          'no-service': Strings<'name'>;
          address: Strings<'of' | 'what' | 'text'> & {
            readonly is: SpecialUse | 'of-other-family' | 'of-node';
          };
          /** `text` or `expected` is undefined if that text ends before this line. */
          line: { readonly text?: string | undefined; readonly expected?: string | undefined };
          more: Numbers<'more'>;
        }
      >
  );
