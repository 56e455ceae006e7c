// Builds what a release holds, for x64 and arm64, into dist/packages: for Linux .deb and .rpm; archives for Linux, and of kpc for macOS
// and Windows; the npm packages of kpc and kpc-mcp; the manifests for package managers; the lists of what is bundled, and the
// checksums. The same commit gives the same bytes.
//
//   node packaging/build.mjs [x64] [arm64]      of these architectures alone: no packages of npm, and no manifests
//
// It needs npm's registry for Node itself (packaging/node/package-lock.json says which), dpkg-deb, and rpmbuild of Debian's
// package rpm. package.json says where the project is, whose releases hold the files, and who its author is.
// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { bundledPackages, licencesOf, separator } from '../scripts/licences.mjs';
import { checksModule } from '../scripts/checks-module.mjs';
import { codesModule } from '../scripts/codes-module.mjs';
import { bundleProgram, makeSingleFile } from '../scripts/single-file.mjs';
import { packTarGz, packZip } from './archives.mjs';
import { archiveName, folderName, forms, platforms } from './assets.mjs';
import { manifests } from './manifests.mjs';
import { listBundled } from './sbom.mjs';
import { unsigned } from './unsigned.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version, author, license, repository: shorthand } = readJson(join(root, 'package.json'));
const out = join(root, 'dist', 'packages');
const programs = ['kpc', 'kpc-apply'];
const repository = shorthand.replace(/^github:/, 'https://github.com/');

const shortDescription = "compiles Kubernetes Services to kube-proxy's rules, offline";
const longDescription = [
  'kpc compiles Kubernetes Services and EndpointSlices to the rules that',
  'kube-proxy programs into a node: iptables, IPVS or nftables. It needs no',
  'cluster, no root and no network. kpc-apply puts those rules into the kernel',
  'of this node, and keeps them there as a service.',
];

/** An architecture, as Node, Debian and rpm call it. */
const architectures = {
  x64: { debian: 'amd64', rpm: 'x86_64' },
  arm64: { debian: 'arm64', rpm: 'aarch64' },
};

/** What kpc-apply runs: on a node that compiles alone, none of it is needed. */
const tools = {
  deb: ['iptables', 'ipset', 'ipvsadm', 'nftables', 'iproute2', 'kmod', 'conntrack'],
  rpm: ['iptables', 'ipset', 'ipvsadm', 'nftables', 'iproute', 'kmod', 'conntrack-tools'],
};

/** The schemas that editors check files of kpc's by. */
const editorSchemas = ['kpc.yaml.schema.json', 'expectations.schema.json'];

/** Where packages of each kind keep what zsh reads. */
const zshFolders = { deb: 'usr/share/zsh/vendor-completions', rpm: 'usr/share/zsh/site-functions' };

const asked = process.argv.slice(2);
const missing = listMissing();
if (missing.length > 0) {
  console.error(`error: packages cannot be built here:\n${missing.map((line) => `  ${line}\n`).join('')}`.trimEnd());
  process.exit(1);
}
const epoch =
  process.env['SOURCE_DATE_EPOCH'] ??
  execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root }).toString().trim();
const date = new Date(Number(epoch) * 1000).toISOString().slice(0, 10);
const env = { ...process.env, SOURCE_DATE_EPOCH: epoch, TZ: 'UTC', LC_ALL: 'C' };
const work = mkdtempSync(join(tmpdir(), 'kpc-packages-'));
process.umask(0o022);
try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  await buildAll();
} finally {
  rmSync(work, { recursive: true, force: true });
}

/**
 * What this machine lacks, all of it, before anything is built: some of it is needed only after minutes.
 *
 * @returns {readonly string[]} each with what to do about it
 */
function listMissing() {
  const needed = [
    ['dpkg-deb', 'install the package dpkg'],
    ['rpmbuild', 'install the package rpm'],
    ['tar', 'install the package tar'],
    ['npm', 'it comes with Node'],
    ...(process.env['SOURCE_DATE_EPOCH'] === undefined ? [['git', 'install it, or set SOURCE_DATE_EPOCH']] : []),
  ];
  const has = (/** @type {string} */ name) =>
    (process.env['PATH'] ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, name)));
  const strange = asked.filter((each) => !Object.keys(architectures).includes(each));
  return [
    ...strange.map((each) => `no architecture ${each}: name x64, arm64, or none for both`),
    ...(process.platform === 'linux' ? [] : [`this is ${process.platform}: build on Linux`]),
    ...needed.flatMap(([name = '', advice = '']) => (has(name) ? [] : [`no ${name}: ${advice}`])),
    ...programs.flatMap((each) =>
      existsSync(join(root, 'dist', `${each}.js`)) ? [] : [`no dist/${each}.js: run "npm run build"`],
    ),
  ];
}

async function buildAll() {
  const nodes = installNode();
  /** @type {import('./manifests.mjs').Asset[]} */
  const assets = [];
  const pages = await manPages();
  for (const platform of platforms.filter(({ architecture }) => asked.length === 0 || asked.includes(architecture))) {
    const { os, arch, architecture } = platform;
    const buildFolder = os === 'linux' ? buildForLinux : buildForDesk;
    const folder = join(work, os, architecture, folderName(version));
    await buildFolder(platform, nodes.of(platform), pages, folder);
    const name = archiveName(version, platform);
    const packed = forms[os].format === 'zip' ? packZip(folder, epoch) : packTarGz(folder, epoch);
    writeFileSync(join(out, name), packed);
    assets.push({ os, arch, name, sha256: sha256(join(out, name)) });
  }
  if (assets.length === platforms.length) {
    for (const [name, text] of manifests({ version, repository, license, assets }))
      writeFileSync(join(out, name), text);
  }
  // Those of npm are of no architecture.
  if (asked.length === 0) packNpm();
  const names = readdirSync(out).sort();
  writeFileSync(join(out, 'SHA256SUMS'), names.map((name) => `${sha256(join(out, name))}  ${name}\n`).join(''));
  for (const name of names)
    console.log(`dist/packages/${name}: ${(readFileSync(join(out, name)).length / 1e6).toFixed(1)} MB`);
}

/** The packages for who has Node: kpc's, which action.yml installs, and that of kpc-mcp, which holds the protocol's SDK. */
function packNpm() {
  const run = (/** @type {string[]} */ ...words) => execFileSync('npm', words, { cwd: root, env, stdio: 'pipe' });
  run('pack', '--ignore-scripts', '--pack-destination', out);
  run('run', 'mcp');
  run('pack', '--ignore-scripts', '--pack-destination', out, './mcp');
}

/** Node for each architecture, as the lock file has it, kept in dist/node between runs. */
function installNode() {
  const folder = join(root, 'dist', 'node');
  mkdirSync(folder, { recursive: true });
  const lock = readFileSync(join(root, 'packaging/node/package-lock.json'), 'utf8');
  if (
    !existsSync(join(folder, 'package-lock.json')) ||
    readFileSync(join(folder, 'package-lock.json'), 'utf8') !== lock
  ) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    cpSync(join(root, 'packaging/node/package.json'), join(folder, 'package.json'));
    writeFileSync(join(folder, 'package-lock.json'), lock);
    // By force: one of them is not for this machine.
    try {
      execFileSync('npm', ['ci', '--force', '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: folder,
        stdio: 'pipe',
      });
    } catch (error) {
      rmSync(folder, { recursive: true });
      throw error;
    }
  }
  /** @param {string} name */
  const installed = (name) => join(folder, 'node_modules', name);
  const licenceOf = (/** @type {string} */ name) => readFileSync(join(installed(name), 'LICENSE'), 'utf8');
  return {
    /**
     * The Node of a platform, and one of the same version that runs here.
     *
     * @param {import('./assets.mjs').Platform} platform
     */
    of({ os, node }) {
      const maker = `${os === 'linux' ? 'node' : 'node-22'}-linux-${process.arch}`;
      const { version: nodeVersion, bin } = readJson(join(installed(node), 'package.json'));
      const made = readJson(join(installed(maker), 'package.json')).version;
      if (made !== nodeVersion)
        throw new Error(`${node} is ${nodeVersion}, and ${maker} ${made}: they must be the same`);
      return {
        path: join(installed(node), bin.node),
        maker: join(installed(maker), 'bin', 'node'),
        version: nodeVersion,
        // The package for Windows has no file with it.
        licence: licenceOf(maker),
      };
    },
  };
}

/**
 * @typedef {ReturnType<ReturnType<typeof installNode>['of']>} PlatformNode
 * @typedef {import('./assets.mjs').Platform} Platform
 */

/**
 * .deb, .rpm, and the folder of the archive, which is for other systems, and for krew.
 *
 * @param {Platform} platform
 * @param {PlatformNode} node
 * @param {ReadonlyMap<string, string>} pages
 * @param {string} folder
 */
async function buildForLinux({ architecture }, node, pages, folder) {
  const executable = join(work, architecture, 'kpc-apply');
  const { metafile, size } = await makeExecutable(executable, node);
  const files = { executable, pages, ...listContent([metafile], node) };
  makeDeb(architecture, files, size);
  makeRpm(architecture, files);
  placeArchive(folder, files);
  place(join(folder, 'kpc'), readFileSync(executable), 0o755);
  place(join(folder, 'kpc-apply.service'), readFileSync(join(root, 'examples/systemd/kpc-apply.service')));
  writeFileSync(join(out, `kpc-${version}.cdx.json`), files.sbom);
}

/**
 * The folder of an archive with kpc alone, for where people work. Windows takes one file with Node in it. On macOS, Node stays a
 * file of its own, as it is signed.
 *
 * @param {Platform} platform
 * @param {PlatformNode} node
 * @param {ReadonlyMap<string, string>} pages
 * @param {string} folder
 */
async function buildForDesk({ os, architecture }, node, pages, folder) {
  const source = `
    import { main } from './src/cli/kpc/main.ts';
    main(process.argv.slice(2)).then((status) => { process.exitCode = status; });
  `;
  if (os === 'windows') {
    const [bare, program] = ['node.exe', 'kpc.exe'].map((name) => join(work, os, architecture, name));
    place(bare ?? '', unsigned(readFileSync(node.path)));
    const choice = { source, out: program ?? '', node: bare ?? '', maker: node.maker, withCache: false };
    const metafile = await makeSingleFile(choice);
    placeArchive(folder, { pages: new Map(), ...listContent([metafile], node) });
    place(join(folder, 'kpc.exe'), readFileSync(program ?? ''), 0o755);
    return;
  }
  const { text, metafile } = await bundleProgram(source, { isBinary: false });
  const own = new Map([...pages].filter(([name]) => name.endsWith('.1')));
  placeArchive(folder, { pages: own, ...listContent([metafile], node) });
  place(join(folder, 'kpc'), readFileSync(join(root, 'packaging/scripts/macos-kpc.sh')), 0o755);
  place(join(folder, 'lib', 'kpc.js'), text);
  place(join(folder, 'lib', 'node'), readFileSync(node.path), 0o755);
}

/**
 * What a program holds, as texts: the licences, and the list.
 *
 * @param {readonly import('esbuild').Metafile[]} metafiles
 * @param {PlatformNode} node
 */
function listContent(metafiles, node) {
  const packages = bundledPackages(metafiles);
  return {
    licences: `${licencesOf(root, packages)}${separator}Node ${node.version}\n\n${node.licence}`,
    sbom: listBundled(root, packages, node.version, epoch),
  };
}

/**
 * Both programs in one file, so that Node is there once. It is kpc-apply; under the name kpc, or as a plugin of kubectl, it
 * is kpc.
 *
 * @param {string} path
 * @param {PlatformNode} node
 */
async function makeExecutable(path, node) {
  const source = `
    import { basename } from 'node:path';
    const isApply = basename(process.argv0).startsWith('kpc-apply');
    const program = isApply ? import('./src/cli/kpc-apply/main.ts') : import('./src/cli/kpc/main.ts');
    program.then(({ main }) => main(process.argv.slice(2))).then((status) => { process.exitCode = status; });
  `;
  const metafile = await makeSingleFile({ source, out: path, node: node.path, maker: node.maker, withCache: false });
  return { metafile, size: readFileSync(path).length };
}

/** @returns {Promise<ReadonlyMap<string, string>>} */
async function manPages() {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'packaging/man-pages.ts')],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    mainFields: ['module', 'main'],
    plugins: [checksModule, codesModule],
    define: { KPC_VERSION: JSON.stringify(version) },
  });
  const path = join(work, 'man-pages.cjs');
  writeFileSync(path, outputFiles[0]?.contents ?? '');
  return createRequire(import.meta.url)(path).manPages(date);
}

/**
 * @typedef {object} Files
 * @property {string} executable
 * @property {ReadonlyMap<string, string>} pages
 * @property {string} licences
 * @property {string} sbom
 */

/**
 * The files of a package, as they are below / on a machine.
 *
 * @param {string} folder
 * @param {'deb' | 'rpm'} kind
 * @param {Files} files
 */
function stage(folder, kind, { executable, pages, licences, sbom }) {
  place(join(folder, 'usr/bin/kpc-apply'), readFileSync(executable), 0o755);
  symlinkSync('kpc-apply', join(folder, 'usr/bin/kpc'));
  for (const [name, text] of pages) {
    place(join(folder, `usr/share/man/man${name.slice(-1)}/${name}.gz`), gzipSync(text, { level: 9 }));
  }
  for (const program of programs) {
    place(join(folder, `usr/share/bash-completion/completions/${program}`), completion(program, 'bash'));
    place(join(folder, zshFolders[kind], `_${program}`), completion(program, 'zsh'));
    place(join(folder, `usr/share/fish/vendor_completions.d/${program}.fish`), completion(program, 'fish'));
  }
  const unit = readFileSync(join(root, 'examples/systemd/kpc-apply.service'), 'utf8');
  place(join(folder, 'usr/lib/systemd/system/kpc-apply.service'), unit.replace('/usr/local/bin/', '/usr/bin/'));
  mkdirSync(join(folder, 'etc/kpc'), { recursive: true });
  const doc = join(folder, 'usr/share/doc/kpc');
  place(join(doc, 'copyright'), `${readFileSync(join(root, 'LICENSE'), 'utf8')}${separator}${licences}`);
  place(join(doc, 'CHANGELOG.md.gz'), gzipSync(readFileSync(join(root, 'CHANGELOG.md')), { level: 9 }));
  place(join(doc, 'kpc.cdx.json'), sbom);
  // A node without a network has these pages alone.
  const pagesBelow = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  for (const page of ['README.md', 'README.zh-CN.md', ...pagesBelow.map((name) => join('docs', name))]) {
    if (page.endsWith('.md')) place(join(doc, page), readFileSync(join(root, page)));
  }
  for (const name of editorSchemas) {
    place(join(folder, 'usr/share/kpc/schemas', name), readFileSync(join(root, 'schemas', name)));
  }
}

/**
 * What the program of this very checkout prints: `npm run build` has built it.
 *
 * @param {string} program
 * @param {string} shell
 */
function completion(program, shell) {
  return execFileSync(process.execPath, [join(root, 'bin', `${program}.js`), 'completion', shell]);
}

/**
 * @param {keyof typeof architectures} architecture
 * @param {Files} files
 * @param {number} size
 */
function makeDeb(architecture, files, size) {
  const folder = join(work, architecture, 'deb');
  stage(folder, 'deb', files);
  const { debian } = architectures[architecture];
  const control = `Package: kpc
Version: ${version}
Architecture: ${debian}
Maintainer: ${author}
Homepage: ${repository}
Installed-Size: ${Math.ceil(size / 1024)}
Section: net
Priority: optional
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6
Recommends: ${tools.deb.join(', ')}
Description: ${shortDescription}
${longDescription.map((line) => ` ${line}\n`).join('')}`;
  place(join(folder, 'DEBIAN/control'), control);
  for (const [name, script] of [
    ['postinst', 'after-install'],
    ['prerm', 'before-remove'],
    ['postrm', 'after-remove'],
  ]) {
    place(join(folder, 'DEBIAN', name ?? ''), readFileSync(join(root, `packaging/scripts/${script}.sh`)), 0o755);
  }
  const path = join(out, `kpc_${version}_${debian}.deb`);
  // One thread: with several, the bytes depend on how many there are.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zzstd', '-z9', '--threads-max=1', '--build', folder, path], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/**
 * @param {keyof typeof architectures} architecture
 * @param {Files} files
 */
function makeRpm(architecture, files) {
  const folder = join(work, architecture, 'rpm');
  stage(folder, 'rpm', files);
  const { rpm } = architectures[architecture];
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join('/', entry.parentPath.slice(folder.length), entry.name))
    .sort();
  /** @param {string} name */
  const script = (name) => readFileSync(join(root, `packaging/scripts/${name}.sh`), 'utf8').replace(/^#!.*\n/, '');
  const spec = `Name: kpc
Version: ${version}
Release: 1
Summary: ${shortDescription}
License: Apache-2.0 AND MIT
URL: ${repository}
AutoReqProv: no
Requires: glibc >= 2.28, libgcc, libstdc++
Recommends: ${tools.rpm.join(', ')}
%description
${longDescription.join('\n')}
%install
cp -a ${folder}/. %{buildroot}/
%post
${script('after-install')}
%preun
${script('before-remove')}
%postun
${script('after-remove')}
%files
%dir /etc/kpc
${paths.join('\n')}
`;
  const top = join(work, architecture, 'rpmbuild');
  place(join(top, 'kpc.spec'), spec);
  const macros = {
    _topdir: top,
    _rpmdir: top,
    _rpmfilename: '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm',
    _binary_payload: 'w9.zstdio',
    _buildhost: 'kpc',
    _build_id_links: 'none',
    __os_install_post: '%{nil}',
    debug_package: '%{nil}',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
  };
  const defines = Object.entries(macros).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
  execFileSync('rpmbuild', ['-bb', '--quiet', '--target', `${rpm}-linux`, ...defines, join(top, 'kpc.spec')], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const name = `kpc-${version}-1.${rpm}.rpm`;
  cpSync(join(top, name), join(out, name));
}

/**
 * What each archive holds beside its program.
 *
 * @param {string} folder
 * @param {Omit<Files, 'executable'>} files
 */
function placeArchive(folder, { pages, licences, sbom }) {
  place(join(folder, 'LICENSE'), readFileSync(join(root, 'LICENSE')));
  place(join(folder, 'THIRD-PARTY-LICENSES.txt'), licences);
  place(join(folder, 'kpc.cdx.json'), sbom);
  for (const [page, text] of pages) place(join(folder, 'man', `man${page.slice(-1)}`, page), text);
  for (const name of editorSchemas) place(join(folder, 'schemas', name), readFileSync(join(root, 'schemas', name)));
}

/**
 * @param {string} path
 * @param {string | Uint8Array} content
 * @param {number} mode
 */
function place(path, content, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

/** @param {string} path */
function sha256(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** @param {string} path */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
