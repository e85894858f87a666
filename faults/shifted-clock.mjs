// Loaded into the service before anything else: its wall clock goes as the file of the variable FAULTS_CLOCK says, read
// anew at SIGUSR2: `{ shiftMs }`, or `{ frozenMs }` for one that stands still. What was read is written beside it, with
// `.read` after its name. Monotonic clocks and timers are left alone.
import { readFileSync, writeFileSync } from 'node:fs';

const RealDate = Date;
let wish = { shiftMs: 0 };

const read = () => {
  const text = readFileSync(process.env.FAULTS_CLOCK, 'utf8');
  wish = JSON.parse(text);
  writeFileSync(`${process.env.FAULTS_CLOCK}.read`, text);
};

const nowMs = () => wish.frozenMs ?? RealDate.now() + wish.shiftMs;

globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(nowMs());
    else super(...given);
  }

  static now() {
    return nowMs();
  }
};

read();
process.on('SIGUSR2', read);
