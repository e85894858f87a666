import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, openSync, realpathSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder, toUnmount } from '../harness/processes.ts';

/** Takes the disk away from a file system in use, and its Debian package. */
export const cutter = { command: 'xfs_io', package: 'xfsprogs' };

/** Runs a program that changes the system; throws what it says when it fails. */
export function run(command: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${error?.message ?? stderr}`);
}

const isFull = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOSPC';

/** A small file system of its own. Root may mount one. */
export class SmallDisk {
  readonly #mount: readonly string[];
  readonly unmount: () => void;
  readonly folder = join(realpathSync(temporaryFolder()), 'disk');

  constructor(mount: readonly string[]) {
    this.#mount = mount;
    mkdirSync(this.folder);
    this.mount();
    this.unmount = toUnmount(() => run('umount', ['-l', this.folder]));
  }

  /** One in memory. */
  static make(megabytes: number): SmallDisk {
    return new SmallDisk(['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs']);
  }

  mount(): void {
    run('mount', [...this.#mount, this.folder]);
  }

  /** Writes until nothing fits any more; answers what takes it away again. */
  fill(): () => void {
    const file = join(this.folder, 'ballast');
    const handle = openSync(file, 'a');
    for (let size = 1 << 20; size >= 1; size = Math.floor(size / 2)) {
      try {
        for (;;) writeSync(handle, Buffer.alloc(size));
      } catch (error) {
        if (!isFull(error)) throw error;
      }
    }
    closeSync(handle);
    return () => rmSync(file);
  }
}

/** One on a disk from which power can be cut: an image of it in a file, with a journal and everything. */
export class DiskWithPower extends SmallDisk {
  static override make(megabytes: number): DiskWithPower {
    const image = join(realpathSync(temporaryFolder()), 'image');
    const handle = openSync(image, 'w');
    ftruncateSync(handle, megabytes << 20);
    closeSync(handle);
    run('mkfs.ext4', ['-q', image]);
    return new DiskWithPower(['-o', 'loop', image]);
  }

  /** From now on nothing gets to the disk, nor what was written and not yet synced: reading and writing fail. */
  cutPower(): void {
    run('xfs_io', ['-x', '-c', 'shutdown', this.folder]);
  }

  /** Mounts what the cut left. Only while no program uses it. */
  restorePower(): void {
    run('umount', [this.folder]);
    this.mount();
  }
}
