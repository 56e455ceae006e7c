import { matching, objectOf, wholeNumber } from '../../base/json/schema.ts';

export const signatureSchema = objectOf({
  keyId: matching('the id of a key', /^[0-9a-f]{16}$/),
  serial: wholeNumber(0),
  /** The size of all files of the bundle together. */
  bytes: wholeNumber(0),
  signature: matching('a signature in base64', /^[A-Za-z0-9+/]{86}==$/),
});
