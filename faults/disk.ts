import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Operation } from './trace.ts';

const sectorBytes = 512;

/** A change of the content of a file. */
type Change =
  | { readonly kind: 'write'; readonly at: number; readonly data: Buffer }
  | { readonly kind: 'truncate'; readonly size: number };

/** A file: what is surely on the disk, and what was done to it since. */
interface File {
  content: Buffer;
  readonly pending: Change[];
}

/** A change of names in the directory: a file comes to have a name, and another name is gone. */
interface NameChange {
  readonly path: string;
  readonly file?: File;
  readonly gone?: string;
  readonly isRename?: boolean;
}

type Write = Extract<Change, { readonly kind: 'write' }>;
type Random = () => number;

function writeInto(content: Buffer, { at, data }: Write): Buffer {
  const size = Math.max(content.length, at + data.length);
  // What was never written reads as zeros.
  const grown = size > content.length ? Buffer.concat([content, Buffer.alloc(size - content.length)]) : content;
  data.copy(grown, at);
  return grown;
}

function applyTo(content: Buffer, change: Change): Buffer {
  if (change.kind === 'write') return writeInto(content, change);
  if (change.size <= content.length) return Buffer.from(content.subarray(0, change.size));
  return Buffer.concat([content, Buffer.alloc(change.size - content.length)]);
}

/** What is left of a write that power was cut from: some of its sectors. */
function torn({ at, data }: Write, random: Random): Write {
  const sectors = Math.ceil(data.length / sectorBytes);
  const kept = Math.floor(random() * (sectors + 1));
  const isHead = random() < 0.5;
  const from = isHead ? 0 : Math.min(data.length, (sectors - kept) * sectorBytes);
  const to = isHead ? Math.min(data.length, kept * sectorBytes) : data.length;
  return { kind: 'write', at: at + from, data: data.subarray(from, to) };
}

/** Of a handle, such as 21 of `21</data/x>`. */
const numberOf = (handle: string) => handle.split('<')[0] ?? '';

type Of<K extends Operation['kind']> = Extract<Operation, { readonly kind: K }>;

/** How much of what was not synced a power cut leaves. */
export const leavings = ['dropped', 'kept', 'mixed'] as const;

/**
 * A directory as the kernel has it, and as the disk does: what was written to a file is surely on the disk once the file was
 * synced, and so is its name; what was renamed or removed, once the directory was.
 */
export class Disk {
  readonly #names = new Map<string, File>();
  readonly #durableNames = new Map<string, File>();
  #pendingNames: NameChange[] = [];
  readonly #places = new Map<string, { readonly file: File; at: number; readonly isAppending: boolean }>();
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Does one operation of `readOperations`. */
  do(operation: Operation): void {
    const { kind, path } = operation;
    if (kind === 'open') this.#open(operation);
    else if (kind === 'write') this.#write(operation);
    else if (kind === 'sync') this.#sync(path);
    else if (kind === 'truncate') this.#names.get(path)?.pending.push({ kind, size: operation.size });
    else this.#rename(path, kind === 'rename' ? operation.to : null);
  }

  #open({ path, flags, handle }: Of<'open'>): void {
    if (/O_DIRECTORY/.test(flags) || path === this.#directory) return;
    let file = this.#names.get(path);
    if (!file && /O_CREAT/.test(flags)) {
      file = { content: Buffer.alloc(0), pending: [] };
      this.#names.set(path, file);
      this.#pendingNames.push({ path, file });
    }
    if (file && /O_TRUNC/.test(flags)) file.pending.push({ kind: 'truncate', size: 0 });
    if (file) this.#places.set(numberOf(handle), { file, at: 0, isAppending: /O_APPEND/.test(flags) });
  }

  #write({ path, handle, at, data, length }: Of<'write'>): void {
    const file = this.#names.get(path);
    if (!file) return;
    let from = at;
    if (from === undefined) {
      const place = this.#places.get(numberOf(handle));
      if (!place || place.file !== file) throw new Error(`it is not known where in ${path} was written`);
      if (place.isAppending) place.at = file.pending.reduce(applyTo, Buffer.from(file.content)).length;
      from = place.at;
      place.at += length;
    }
    file.pending.push({ kind: 'write', at: from, data: data.subarray(0, length) });
  }

  #sync(path: string): void {
    if (path === this.#directory || `${path}/` === this.#directory) {
      for (const change of this.#pendingNames.splice(0)) this.#settle(change);
      return;
    }
    const file = this.#names.get(path);
    if (!file) return;
    file.content = file.pending.splice(0).reduce(applyTo, file.content);
    // The name of a new file comes with it; what was renamed does not.
    const own = this.#pendingNames.find((change) => change.file === file && !change.isRename);
    if (!own) return;
    this.#pendingNames = this.#pendingNames.filter((change) => change !== own);
    this.#settle(own);
  }

  #settle({ path, file, gone }: NameChange): void {
    if (gone !== undefined) this.#durableNames.delete(gone);
    if (file) this.#durableNames.set(path, file);
    else if (gone === undefined) this.#durableNames.delete(path);
  }

  #rename(path: string, to: string | null): void {
    const file = this.#names.get(path);
    if (!file) return;
    this.#names.delete(path);
    if (to === null) {
      this.#pendingNames.push({ path });
      return;
    }
    this.#names.set(to, file);
    this.#pendingNames.push({ path: to, file, gone: path, isRename: true });
  }

  /**
   * Writes to `target` what a power cut at this moment leaves.
   * @param random returns numbers from 0 to 1
   */
  leave(target: string, leaving: (typeof leavings)[number], random: Random): void {
    const names = new Map(this.#durableNames);
    // A directory forgets the last changes, never one in the middle.
    const share = { dropped: 0, kept: 1, mixed: random() }[leaving];
    const settled = this.#pendingNames.slice(0, Math.round(share * this.#pendingNames.length));
    for (const { path, file, gone } of settled) {
      if (gone !== undefined) names.delete(gone);
      if (file) names.set(path, file);
      else names.delete(path);
    }
    mkdirSync(target, { recursive: true, mode: 0o700 });
    for (const [path, file] of names) {
      // The index of the write-ahead log is memory, and made anew.
      if (path.endsWith('-shm')) continue;
      const pending = file.pending.flatMap((change): readonly Change[] => {
        if (leaving === 'kept') return [change];
        if (leaving === 'dropped' || random() < 0.4) return [];
        return change.kind === 'write' && random() < 0.5 ? [torn(change, random)] : [change];
      });
      const content = pending.reduce(applyTo, Buffer.from(file.content));
      writeFileSync(join(target, basename(path)), content, { mode: 0o600 });
    }
  }
}
