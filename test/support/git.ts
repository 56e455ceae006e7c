import { execFileSync } from 'node:child_process';

export function git(cwd: string, ...words: readonly string[]): string {
  const who = ['-c', 'user.name=kpc', '-c', 'user.email=kpc@example.com', '-c', 'protocol.file.allow=always'];
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
  return execFileSync('git', [...who, ...words], { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Commits everything in a folder. First makes the folder a repository if it is not one. */
export function commitAll(cwd: string, message = 'a commit'): void {
  git(cwd, 'init', '--quiet', '--initial-branch', 'main');
  git(cwd, 'add', '--all');
  git(cwd, 'commit', '--quiet', '--message', message);
}
