import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes a new pair of keys as name.key and name.pub, like openssl. Returns the paths. */
export function makeKey(folder: string, name: string): { readonly secret: string; readonly trusted: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const [secret, trusted] = [join(folder, `${name}.key`), join(folder, `${name}.pub`)];
  writeFileSync(secret, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(trusted, publicKey.export({ type: 'spki', format: 'pem' }));
  return { secret, trusted };
}
