const signatureBytes = 8;
/** Length, type and checksum of a chunk. */
const frameBytes = 12;
/** Text of a hundred bytes unpacks to megabytes, and the library unpacks all of it to read the header. */
const texts = new Set(['tEXt', 'zTXt', 'iTXt']);

/** A PNG without its texts, which nothing here reads. What is no sound PNG is left for the decoder to judge. */
export function withoutTexts(png: Buffer): Buffer {
  const kept: Buffer[] = [png.subarray(0, signatureBytes)];
  let at = signatureBytes;
  while (at + frameBytes <= png.length) {
    const end = at + frameBytes + png.readUInt32BE(at);
    if (!texts.has(png.toString('latin1', at + 4, at + 8))) kept.push(png.subarray(at, end));
    at = end;
  }
  kept.push(png.subarray(at));
  return Buffer.concat(kept);
}
