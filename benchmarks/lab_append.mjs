// What one append costs the lab extension's pure part, by the size of the log: node benchmarks/lab_append.mjs
// The store copies what it hands out and takes in, as the notebook's model does; drawing and the websocket are apart.
import { createHash } from 'node:crypto';

import { NotebookLog } from '../plan_mode_nb/hosts/lab/labextension/lib/metadata.js';

const APPENDS = 200;
const hex = text => createHash('sha256').update(text).digest('hex');
const line = seq => JSON.stringify({ type: 'todo/write', seq, time: 1, data: { text: 'y'.repeat((seq * 37) % 560) } });

function store() {
  const entries = new Map();
  return {
    get: key => structuredClone(entries.get(key)),
    set: (key, value) => {
      entries.set(key, structuredClone(value));
    }
  };
}

function measured(bytes) {
  const log = new NotebookLog(store());
  let [start, hash, size] = [0, hex('s'), 0];
  const header = { version: 0, id: 's' };
  const append = events => {
    const answer = log.append({ session: 's', start, events, prev: hash, header, agents: { main: 's' } });
    if (answer.length !== start + events.length) throw new Error(JSON.stringify(answer));
    for (const each of events) [hash, size] = [hex(hash + each), size + each.length];
    start = answer.length;
  };
  while (size < bytes) append(Array.from({ length: 500 }, (_, i) => line(start + i)));
  log.plan();
  const times = [];
  for (let i = 0; i < APPENDS; i++) {
    const events = [line(start)];
    const before = performance.now();
    append(events);
    log.plan();
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  return { megabytes: bytes / 1e6, events: start, median_ms: times[APPENDS / 2], p95_ms: times[Math.floor(APPENDS * 0.95)] };
}

measured(100_000); // the first one pays for compiling
console.log(JSON.stringify([1e5, 1e6, 1e7].map(measured)));
