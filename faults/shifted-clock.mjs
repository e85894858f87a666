// Loaded into the service before anything else: its wall clock goes as the file of the variable FAULTS_CLOCK says, read
// anew at SIGUSR2: `{ shiftMs }`, or `{ frozenMs }` for one that stands still. What was read is written beside it, with
// `.read` after its name. Monotonic clocks and timers are left alone.
import { readFileSync, writeFileSync } from 'node:fs';

const RealDate = Date;
const file = process.env['FAULTS_CLOCK'] ?? '';
/** @type {{ shiftMs?: number, frozenMs?: number }} */
let wanted = { shiftMs: 0 };

const read = () => {
  const text = readFileSync(file, 'utf8');
  wanted = JSON.parse(text);
  writeFileSync(`${file}.read`, text);
};

const nowMs = () => wanted.frozenMs ?? RealDate.now() + (wanted.shiftMs ?? 0);

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given) => Reflect.construct(target, given.length === 0 ? [nowMs()] : given),
  get: (target, name) => (name === 'now' ? nowMs : Reflect.get(target, name)),
});

read();
process.on('SIGUSR2', read);
