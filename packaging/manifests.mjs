// What package managers read to find and install the archives of a release. Each is made of the same list of assets.
// @ts-check
import { Document } from 'yaml';
import { folderName, forms } from './assets.mjs';

/**
 * @typedef {object} Asset an archive of the release
 * @property {keyof typeof forms} os
 * @property {'amd64' | 'arm64'} arch
 * @property {string} name
 * @property {string} sha256
 */

/**
 * @typedef {object} Release
 * @property {string} version
 * @property {string} repository the address of the project, at GitHub
 * @property {string} license
 * @property {readonly Asset[]} assets
 */

const summary = "Compiles Kubernetes Services to kube-proxy's rules, offline";

/**
 * All manifests, by the name of their file.
 *
 * @param {Release} release
 * @returns {ReadonlyMap<string, string>}
 */
export function manifests(release) {
  return new Map([
    ['krew-kpc.yaml', krew(release)],
    ['homebrew-kpc.rb', homebrew(release)],
    ['aqua-registry.yaml', aqua(release)],
    ['mise-kpc.toml', mise(release)],
    ['scoop-kpc.json', scoop(release)],
  ]);
}

/**
 * @param {Release} release
 * @param {Asset} asset
 */
function addressOf({ repository, version }, { name }) {
  return `${repository}/releases/download/v${version}/${name}`;
}

/**
 * The files of an archive beside kpc that it needs, or that must come with it.
 *
 * @param {keyof typeof forms} os
 */
function filesOf(os) {
  const { program } = forms[os];
  return [program, ...(os === 'darwin' ? ['lib/*'] : []), 'LICENSE', 'THIRD-PARTY-LICENSES.txt'];
}

/**
 * krew takes files alone and no links: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest
 *
 * @param {Release} release
 */
function krew(release) {
  const { version, repository, assets } = release;
  return toYaml({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'kpc' },
    spec: {
      version: `v${version}`,
      homepage: repository,
      shortDescription: "Compile Services to kube-proxy's rules, offline",
      description: `Compiles Kubernetes Services to the rules that kube-proxy programs into a node, offline, and
compares, describes and traces them. It reads manifests and dumps. The cluster is read by kubectl,
with the context at hand, if no input is named:

  kubectl kpc describe
  kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml | kubectl kpc describe -
`,
      platforms: assets.map((asset) => ({
        selector: { matchLabels: { os: asset.os, arch: asset.arch } },
        uri: addressOf(release, asset),
        sha256: asset.sha256,
        bin: forms[asset.os].program,
        files: filesOf(asset.os).map((path) => ({
          from: `${folderName(version)}/${path}`,
          to: path.startsWith('lib/') ? 'lib' : '.',
        })),
      })),
    },
  });
}

/**
 * A formula: https://docs.brew.sh/Formula-Cookbook
 *
 * @param {Release} release
 */
function homebrew(release) {
  const { repository, license, assets } = release;
  const systems = { darwin: 'on_macos', linux: 'on_linux' };
  const processors = { amd64: 'on_intel', arm64: 'on_arm' };
  const blocks = Object.entries(systems).map(([os, block]) => {
    const inner = assets
      .filter((asset) => asset.os === os)
      .toSorted((one, other) => (one.arch > other.arch ? -1 : 1))
      .map((asset) =>
        rubyBlock(processors[asset.arch], [`url "${addressOf(release, asset)}"`, `sha256 "${asset.sha256}"`]),
      );
    return rubyBlock(block, inner.join('\n\n').split('\n'));
  });
  const install = [
    'libexec.install Dir["*"]',
    'bin.install_symlink libexec/"kpc"',
    'man1.install_symlink Dir[libexec/"man/man1/*"]',
    'generate_completions_from_executable(bin/"kpc", "completion")',
  ];
  const test = ['assert_match version.to_s, shell_output("#{bin}/kpc --version")'];
  const parts = [
    `desc "${summary}"\nhomepage "${repository}"\nlicense "${license}"`,
    ...blocks,
    rubyBlock('def install', install),
    rubyBlock('test', test),
  ];
  return `${rubyBlock('class Kpc < Formula', parts.join('\n\n').split('\n'))}\n`;
}

/**
 * @param {string} head
 * @param {readonly string[]} lines
 */
function rubyBlock(head, lines) {
  const opening = /^(?:class|def) /.test(head) ? head : `${head} do`;
  return [opening, ...lines.map((line) => (line === '' ? '' : `  ${line}`)), 'end'].join('\n');
}

/**
 * An entry of aqua's registry: https://aquaproj.github.io/docs/reference/registry-config
 *
 * @param {Release} release
 */
function aqua({ version, repository, assets }) {
  const [owner, name] = repository.split('/').slice(-2);
  const formats = new Map(assets.map(({ os }) => [os, forms[os].format]));
  const usual = 'tar.gz';
  return toYaml({
    packages: [
      {
        type: 'github_release',
        repo_owner: owner,
        repo_name: name,
        description: summary,
        asset: 'kpc_{{trimV .Version}}_{{.OS}}_{{.Arch}}.{{.Format}}',
        format: usual,
        format_overrides: [...formats].flatMap(([goos, format]) => (format === usual ? [] : [{ goos, format }])),
        files: [{ name: 'kpc', src: `${folderName(version).replace(version, '{{trimV .Version}}')}/kpc` }],
        supported_envs: assets.map(({ os, arch }) => `${os}/${arch}`),
        checksum: { type: 'github_release', asset: 'SHA256SUMS', algorithm: 'sha256' },
      },
    ],
  });
}

/**
 * An entry of mise's registry, in which a backend finds the archive by its name: https://mise.jdx.dev/registry.html
 *
 * @param {Pick<Release, 'repository'>} release
 */
export function miseTool({ repository }) {
  const path = repository.split('/').slice(-2).join('/');
  return {
    backends: [`aqua:${path}`, `github:${path}`],
    bins: ['kpc'],
    description: summary,
    test: { cmd: 'kpc --version', expected: '{{version}}' },
    version_order: 'semver',
  };
}

/** @param {Release} release */
function mise(release) {
  /**
   * A value of TOML, whose strings and lists are written as in JSON.
   *
   * @param {string | readonly string[] | Readonly<Record<string, string>>} value
   */
  const toToml = (value) =>
    typeof value === 'string' || Array.isArray(value)
      ? JSON.stringify(value)
      : `{ ${Object.entries(value)
          .map(([key, text]) => `${key} = ${JSON.stringify(text)}`)
          .join(', ')} }`;
  return Object.entries(miseTool(release))
    .map(([key, value]) => `${key} = ${toToml(value)}\n`)
    .join('');
}

/**
 * A manifest for scoop: https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests
 *
 * @param {Release} release
 */
function scoop(release) {
  const { version, repository, license, assets } = release;
  const names = { amd64: '64bit', arm64: 'arm64' };
  const own = assets.filter(({ os }) => os === 'windows');
  /** @param {(asset: Asset) => Readonly<Record<string, string>>} make */
  const architectures = (make) => Object.fromEntries(own.map((asset) => [names[asset.arch], make(asset)]));
  const manifest = {
    version,
    description: summary,
    homepage: repository,
    license,
    architecture: architectures((asset) => ({
      url: addressOf(release, asset),
      hash: asset.sha256,
      extract_dir: folderName(version),
    })),
    bin: forms.windows.program,
    checkver: 'github',
    autoupdate: {
      architecture: architectures((asset) => ({
        url: addressOf(release, asset).replaceAll(version, '$version'),
        extract_dir: folderName('$version'),
      })),
      hash: { url: '$baseurl/SHA256SUMS' },
    },
  };
  return `${JSON.stringify(manifest, null, 4)}\n`;
}

/** @param {unknown} value */
function toYaml(value) {
  return new Document(value, { aliasDuplicateObjects: false }).toString({ lineWidth: 0 });
}
