// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What is in a program, in CycloneDX: what npm says of the packages that are bundled, and Node. Without a clock.
 *
 * @param {string} root
 * @param {readonly string[]} packages
 * @param {string} nodeVersion
 * @param {string} epoch
 */
export function listBundled(root, packages, nodeVersion, epoch) {
  const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], {
    cwd: root,
    maxBuffer: 2 ** 28,
  }).toString();
  const { metadata, components, ...all } = JSON.parse(text);
  const bundled = packages.map((name) => {
    // Another package may need another version of it.
    const { version } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
    /** @typedef {{ readonly name: string, readonly version: string, readonly 'bom-ref': string }} Component */
    const component = components.find(
      (/** @type {Component} */ each) => each.name === name && each.version === version,
    );
    if (!component) throw new Error(`npm sbom does not list ${name} ${version}`);
    return /** @type {Component & { readonly properties: unknown }} */ (component);
  });
  const node = {
    'bom-ref': `node@${nodeVersion}`,
    type: 'platform',
    name: 'node',
    version: nodeVersion,
    purl: `pkg:generic/node@${nodeVersion}`,
    licenses: [{ license: { id: 'MIT' } }],
  };
  // To npm all of them are for development alone: a user has no package to install.
  const listed = [...bundled.map(({ properties: _, ...each }) => ({ ...each, scope: 'required' })), node];
  const content = {
    ...all,
    metadata: {
      ...metadata,
      timestamp: new Date(Number(epoch) * 1000).toISOString(),
      component: { ...metadata.component, type: 'application', name: 'kpc' },
    },
    components: listed,
    dependencies: [
      { ref: metadata.component['bom-ref'], dependsOn: listed.map((each) => each['bom-ref']) },
      ...listed.map((each) => ({ ref: each['bom-ref'], dependsOn: [] })),
    ],
  };
  const digest = createHash('sha256')
    .update(JSON.stringify({ ...content, serialNumber: '' }))
    .digest('hex');
  const uuid = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-5$3-8$4-$5');
  return `${JSON.stringify({ ...content, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}
