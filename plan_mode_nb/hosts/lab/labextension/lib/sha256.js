// @ts-check
// SHA-256 as FIPS 180-4 has it, synchronous: WebCrypto is asynchronous, and absent on plain http away from localhost.

/** The first 32 bits of the fractional parts of the n-th roots of the first `count` primes.
 * @param {number} count @param {number} root */
function primeRoots(count, root) {
  const words = [];
  for (let n = 2; words.length < count; n++) {
    let prime = true;
    for (let d = 2; d * d <= n && prime; d++) prime = n % d !== 0;
    if (prime) words.push(((n ** (1 / root) % 1) * 2 ** 32) | 0);
  }
  return Int32Array.from(words);
}

const K = primeRoots(64, 3);
const START = primeRoots(8, 2);
const utf8 = new TextEncoder();
const schedule = new Int32Array(64);

/** @param {Int32Array} state @param {DataView} block @param {number} offset */
function compress(state, block, offset) {
  const w = schedule;
  for (let i = 0; i < 16; i++) w[i] = block.getInt32(offset + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15],
      y = w[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
  }
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

/**
 * UTF-8, and half a surrogate pair as the three bytes it would have: a hand-edited line is hashed as the kernel does.
 * @param {string} text
 */
function encode(text) {
  if (!/\p{Surrogate}/u.test(text)) return utf8.encode(text);
  const parts = text.split(/(\p{Surrogate})/u).map((part, i) => {
    const code = part.charCodeAt(0);
    return i % 2 ? [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)] : [...utf8.encode(part)];
  });
  return Uint8Array.from(parts.flat());
}

/** SHA-256 over the UTF-8 of `text`, as 64 lower-case hex digits. @param {string} text */
export function sha256(text) {
  const bytes = encode(text);
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const state = START.slice();
  for (let at = 0; at < padded.length; at += 64) compress(state, view, at);
  return Array.from(state, word => (word >>> 0).toString(16).padStart(8, '0')).join('');
}
