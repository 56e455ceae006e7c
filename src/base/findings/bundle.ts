import type { SpecialUse } from '../../kernel/address.ts';
import type { JsonFault } from '../json/check.ts';
import type { By, None, Numbers, Strings } from './rows.ts';

/** Where in a bundle or golden something is wrong. */
export interface InFile {
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** What is wrong with a bundle or golden. */
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
          /** The reason of the file's parser, or of the system. */
          unread: Strings<'reason'>;
          /** A value that kpc would not write; `must` has the words of a setting's row. */
          value: Strings<'name'> & { readonly must?: string | undefined };
          /** A Service of ports or health checks. */
          'no-service': Strings<'name'>;
          /** An address or network of a Service port. */
          address: Strings<'of' | 'what' | 'text'> & {
            readonly is: SpecialUse | 'of-other-family' | 'of-node';
          };
          /** Each is undefined after the end. */
          line: { readonly text?: string | undefined; readonly expected?: string | undefined };
          more: Numbers<'more'>;
        }
      >
  );
