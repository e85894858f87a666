import { constants, deflateRawSync, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';

/** Content of a PNG; 8-bit grey by default. */
interface PngForm {
  /** The rows as zlib data; nothing has to fit the header. */
  readonly rows: Buffer;
  readonly depth?: number;
  /** 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA. */
  readonly colour?: number;
  readonly interlaced?: true;
  /** Chunks between header and data. */
  readonly chunks?: readonly Buffer[];
}

const crcTable = Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes: Buffer): number {
  let crc = -1;
  for (const byte of bytes) crc = (crcTable[(crc ^ byte) & 255] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** One chunk of a PNG, with its length and checksum. */
export function pngChunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(named.length + 8);
  chunk.writeUInt32BE(data.length);
  named.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(named), named.length + 4);
  return chunk;
}

/** A PNG of any size that its header likes to claim, around rows that may be others. */
export function madePng(width: number, height: number, form: PngForm): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(form.depth ?? 8, 8);
  header.writeUInt8(form.colour ?? 0, 9);
  if (form.interlaced) header.writeUInt8(1, 12);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    ...(form.chunks ?? []),
    pngChunk('IDAT', form.rows),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Returns that many zero bytes as zlib data, made without holding them: for rows that are valid and enormous. */
export function compressedZeros(length: number): Buffer {
  const part = 1_048_576;
  const zeros = (bytes: number) => deflateRawSync(Buffer.alloc(bytes), { finishFlush: constants.Z_FULL_FLUSH });
  const whole = Array<Buffer>(Math.floor(length / part)).fill(zeros(part));
  const end = Buffer.from([0x03, 0x00, 0, 0, 0, 1]);
  end.writeUInt16BE(length % 65_521, 2);
  return Buffer.concat([Buffer.from([0x78, 0x01]), ...whole, zeros(length % part), end]);
}

/** A GIF of black frames, each of one pixel, on a canvas of that size. */
export function madeGif(width: number, height: number, frames: number): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt16LE(width);
  size.writeUInt16LE(height, 2);
  const frame = '21f90400010000002c0000000001000100000202440100';
  return Buffer.concat([
    Buffer.from('GIF89a', 'latin1'),
    size,
    Buffer.from('800000000000ffffff', 'hex'),
    ...Array<Buffer>(frames).fill(Buffer.from(frame, 'hex')),
    Buffer.from(';', 'latin1'),
  ]);
}

function riffChunk(name: string, data: Buffer): Buffer {
  const head = Buffer.from(`${name}    `, 'latin1');
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data]);
}

/** An animated WebP of transparent frames, each of 16 by 16 pixels, on a square canvas. */
export async function madeAnimatedWebp(side: number, frames: number): Promise<Buffer> {
  const still = await plain(16, 16, 'teal').webp({ lossless: true }).toBuffer();
  const canvas = Buffer.alloc(10);
  canvas.writeUInt8(0x02);
  canvas.writeUIntLE(side - 1, 4, 3);
  canvas.writeUIntLE(side - 1, 7, 3);
  const frame = riffChunk(
    'ANMF',
    Buffer.concat([Buffer.from('0000000000000f00000f000064000000', 'hex'), still.subarray(12)]),
  );
  const chunks = [riffChunk('VP8X', canvas), riffChunk('ANIM', Buffer.alloc(6)), ...Array<Buffer>(frames).fill(frame)];
  return riffChunk('RIFF', Buffer.concat([Buffer.from('WEBP', 'latin1'), ...chunks]));
}

/** A progressive grey JPEG: one scan for the average of each block and `scans - 1` that say nothing, a few bytes each. */
export function jpegOfScans(side: number, scans: number): Buffer {
  const blocks = Math.ceil(side / 8) ** 2;
  const size = Buffer.alloc(4);
  size.writeUInt16BE(side);
  size.writeUInt16BE(side, 2);
  // Each "end of band" covers 32,767 blocks: one bit of its code, then 14 bits set.
  const bits = `0${'1'.repeat(14)}`.repeat(Math.ceil(blocks / 32_767));
  const bytes = (bits.match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, '1'), 2));
  const data = bytes.flatMap((byte) => (byte === 255 ? [255, 0] : [byte]));
  const oneCode = `01${'00'.repeat(15)}`;
  const scan = Buffer.concat([Buffer.from('ffda0008010100013f00', 'hex'), Buffer.from(data)]);
  return Buffer.concat([
    Buffer.from(`ffd8ffdb004300${'01'.repeat(64)}ffc2000b08`, 'hex'),
    size,
    Buffer.from(`01011100ffc4001400${oneCode}00ffc4001410${oneCode}e0ffda0008010100000000`, 'hex'),
    Buffer.alloc(Math.ceil(blocks / 8)),
    ...Array<Buffer>(scans - 1).fill(scan),
    Buffer.from('ffd9', 'hex'),
  ]);
}

/** A picture of one colour, for sharp to write in any type. */
export function plain(width: number, height: number, afterResponse: string): Sharp {
  return sharp({ create: { width, height, channels: 3, background: afterResponse } });
}

/** Coloured noise around grey: the larger `sigma`, the worse it compresses. Differs from run to run. */
export function noise(width: number, height: number, sigma: number): Sharp {
  return sharp({
    create: { width, height, channels: 3, background: '#000', noise: { type: 'gaussian', mean: 128, sigma } },
  });
}

/** A PNG of one grey pixel, with more chunks where those are what matters. */
export function onePixel(...chunks: readonly Buffer[]): Buffer {
  return madePng(1, 1, { rows: deflateSync(Buffer.from([0, 200])), chunks });
}

/** The markers of a JPEG from its start to its first scan, such as `d8 e0 db c0 c4 da`. */
export function jpegMarkers(jpeg: Buffer): string[] {
  const markers = ['d8'];
  for (let at = 2; markers.at(-1) !== 'da'; at += 2 + jpeg.readUInt16BE(at + 2)) {
    markers.push(jpeg.toString('hex', at + 1, at + 2));
  }
  return markers;
}
