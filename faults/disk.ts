import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const sectorBytes = 512;

function writeInto(content, { at, data }) {
  const size = Math.max(content.length, at + data.length);
  // What was never written reads as zeros.
  const grown = size > content.length ? Buffer.concat([content, Buffer.alloc(size - content.length)]) : content;
  data.copy(grown, at);
  return grown;
}

function applyTo(content, change) {
  if (change.kind === 'write') return writeInto(content, change);
  if (change.size <= content.length) return Buffer.from(content.subarray(0, change.size));
  return Buffer.concat([content, Buffer.alloc(change.size - content.length)]);
}

/** What is left of a write that power was cut from: some of its sectors. */
function torn({ at, data, ...change }, random) {
  const sectors = Math.ceil(data.length / sectorBytes);
  const kept = Math.floor(random() * (sectors + 1));
  const isHead = random() < 0.5;
  const from = isHead ? 0 : Math.min(data.length, (sectors - kept) * sectorBytes);
  const to = isHead ? Math.min(data.length, kept * sectorBytes) : data.length;
  return { ...change, at: at + from, data: data.subarray(from, to) };
}

/** How much of what was not synced a power cut leaves. */
export const leavings = ['dropped', 'kept', 'mixed'];

/**
 * A directory as the kernel has it, and as the disk does: what was written to a file is surely on the disk once the file was
 * synced, and so is its name; what was renamed or removed, once the directory was.
 */
export class Disk {
  #names = new Map();
  #durableNames = new Map();
  #pendingNames = [];
  #places = new Map();
  #directory;

  constructor(directory) {
    this.#directory = directory;
  }

  /** Does one operation of `readOperations`. */
  do(operation) {
    const { kind, path } = operation;
    if (kind === 'open') return this.#open(operation);
    if (kind === 'write') return this.#write(operation);
    if (kind === 'sync') return this.#sync(path);
    if (kind === 'truncate') return this.#names.get(path)?.pending.push({ kind, size: operation.size });
    return this.#rename(operation);
  }

  #open({ path, flags, handle }) {
    if (/O_DIRECTORY/.test(flags) || path === this.#directory) return;
    let file = this.#names.get(path);
    if (!file && /O_CREAT/.test(flags)) {
      file = { content: Buffer.alloc(0), pending: [] };
      this.#names.set(path, file);
      this.#pendingNames.push({ path, file });
    }
    if (file && /O_TRUNC/.test(flags)) file.pending.push({ kind: 'truncate', size: 0 });
    if (file) this.#places.set(handle.split('<')[0], { file, at: 0, isAppending: /O_APPEND/.test(flags) });
  }

  #write({ path, handle, at, data, length }) {
    const file = this.#names.get(path);
    if (!file) return;
    let from = at;
    if (from === undefined) {
      const place = this.#places.get(handle.split('<')[0]);
      if (!place || place.file !== file) throw new Error(`nobody knows where in ${path} was written`);
      if (place.isAppending) place.at = file.pending.reduce(applyTo, Buffer.from(file.content)).length;
      from = place.at;
      place.at += length;
    }
    file.pending.push({ kind: 'write', at: from, data: data.subarray(0, length) });
  }

  #sync(path) {
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

  #settle({ path, file, gone }) {
    if (gone !== undefined) this.#durableNames.delete(gone);
    if (file) this.#durableNames.set(path, file);
    else if (gone === undefined) this.#durableNames.delete(path);
  }

  #rename({ kind, path, to }) {
    const file = this.#names.get(path);
    if (!file) return;
    this.#names.delete(path);
    if (kind === 'unlink') {
      this.#pendingNames.push({ path });
      return;
    }
    this.#names.set(to, file);
    this.#pendingNames.push({ path: to, file, gone: path, isRename: true });
  }

  /**
   * Writes to `target` what a power cut at this moment leaves.
   * @param leaving one of `leavings`
   * @param random answers numbers from 0 to 1
   */
  leave(target, leaving, random) {
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
      const pending = file.pending.flatMap((change) => {
        if (leaving === 'kept') return [change];
        if (leaving === 'dropped' || random() < 0.4) return [];
        return change.kind === 'write' && random() < 0.5 ? [torn(change, random)] : [change];
      });
      const content = pending.reduce(applyTo, Buffer.from(file.content));
      writeFileSync(join(target, basename(path)), content, { mode: 0o600 });
    }
  }
}
