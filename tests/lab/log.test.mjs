import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';

import {
  LONGEST,
  SEAL,
  SessionLog,
  chunkKey,
  foldPlan,
  points,
  unplanned
} from '../../plan_mode_nb/hosts/lab/labextension/lib/log.js';
import { sha256 } from '../../plan_mode_nb/hosts/lab/labextension/lib/sha256.js';
import { chained, memory, numbered } from './memory.mjs';

/** Append and commit, as the notebook does. */
function put(log, start, lines, prev = chained(log.session, [...log.lines(0)].slice(0, start))) {
  const { answer, writes } = log.plan(start, lines, prev);
  for (const [key, value] of writes) log.store.set(key, value);
  return answer;
}
const events = numbered(300);

test('sha256 is the standard one, over UTF-8, at every length around the block borders', () => {
  for (let n = 0; n < 300; n++)
    for (const text of ['x'.repeat(n), 'aé計😀\n'.repeat(n)])
      assert.equal(sha256(text), createHash('sha256').update(text).digest('hex'));
});

test('half a surrogate pair is hashed as the kernel hashes it', () => {
  const bytes = Buffer.from([0x61, 0xed, 0xa0, 0xbd, 0xc3, 0xa9, 0xed, 0xb8, 0x80]);
  assert.equal(sha256('a\ud83dé\ude00'), createHash('sha256').update(bytes).digest('hex'));
});

test('length counts code points: a pair of surrogates is one, a lone one is one', () => {
  const texts = ['', 'é', '計', '😀', '👨‍👩‍👧', '\ud83d', 'a\ude00b'];
  assert.deepEqual(texts.map(points), [0, 1, 1, 1, 5, 1, 3]);
});

test('any batching yields the same chunks', () => {
  const one = new SessionLog(memory(), 's'),
    many = new SessionLog(memory(), 's');
  put(one, 0, events);
  for (let i = 0, n; i < events.length; i += n) {
    n = 1 + ((i * 13) % 17);
    put(many, i, events.slice(i, i + n));
  }
  assert.deepEqual([...many.store.entries], [...one.store.entries]);
  assert.deepEqual([...one.lines(0)], events);
  assert.ok(one.store.entries.size > 5);
});

test('a chunk takes no further line once it holds 16,384 code points, astral ones counted once', () => {
  const log = new SessionLog(memory(), 's');
  const half = '😀'.repeat(SEAL / 2);
  put(log, 0, [half, half.slice(2), 'x', 'y', 'z']);
  assert.deepEqual(
    [...log.chunks()].map(chunk => [chunk.start, chunk.lines.length]),
    [
      [0, 3],
      [3, 2]
    ]
  );
});

test('a repeated or overlapping append changes nothing that is there', () => {
  const log = new SessionLog(memory(), 's');
  put(log, 0, events.slice(0, 250));
  const before = [...log.store.entries];
  assert.deepEqual(put(log, 100, events.slice(100, 200)), { length: 250 });
  assert.deepEqual([...log.store.entries], before);
  assert.deepEqual(put(log, 200, events.slice(200)), { length: 300 });
  assert.deepEqual([...log.lines(0)], events);
});

test('a gap answers the position wanted', () => {
  const log = new SessionLog(memory(), 's');
  put(log, 0, events.slice(0, 10));
  assert.deepEqual(log.plan(12, events.slice(12), ''), { answer: { want: 10 }, writes: new Map() });
});

test('a differing line is never written over: the answer names the position', () => {
  const log = new SessionLog(memory(), 's');
  put(log, 0, events);
  assert.deepEqual(log.plan(5, [events[5], '{}', events[7]], ''), { answer: { diverged: 6 }, writes: new Map() });
});

test('a different past is noticed by the chained hash, though no position overlaps', () => {
  const log = new SessionLog(memory(), 's');
  put(log, 0, events.slice(0, 40));
  const other = chained('s', ['{}', ...events.slice(1, 40)]);
  assert.deepEqual(log.plan(40, events.slice(40), other), { answer: { diverged: 40 }, writes: new Map() });
  assert.deepEqual(put(log, 40, events.slice(40), chained('s', events.slice(0, 40))), { length: 300 });
});

test('the first append is chained to the session id', () => {
  const log = new SessionLog(memory(), 's');
  assert.deepEqual(put(log, 0, events, sha256('t')), { diverged: 0 });
  assert.deepEqual(put(log, 0, events, sha256('s')), { length: 300 });
});

test('the chained hash is the same at any length, asked in any order', () => {
  const log = new SessionLog(memory(), 's');
  put(log, 0, events);
  for (const length of [300, 17, 0, 299, 18, 300])
    assert.equal(log.chained(length), chained('s', events.slice(0, length)));
});

test('what somebody else wrote is seen once forget() was called', () => {
  const store = memory(),
    log = new SessionLog(store, 's'),
    other = new SessionLog(store, 's');
  put(log, 0, events.slice(0, 100));
  store.entries.clear();
  put(other, 0, ['{"other":1}']);
  log.forget();
  assert.deepEqual(log.plan(1, ['{}'], chained('s', ['{"other":1}'])).answer, { length: 2 });
  assert.deepEqual(log.plan(1, ['{}'], chained('s', events.slice(0, 1))).answer, { diverged: 1 });
});

for (const junk of [null, 7, 'text', {}, [], [1], ['a', null], { 0: 'a', length: 1 }, ['x'.repeat(LONGEST + 1)]])
  test(`a chunk that is ${JSON.stringify(junk).slice(0, 20)} ends the reading and is not written over`, () => {
    const log = new SessionLog(memory(), 's');
    put(log, 0, events.slice(0, 60));
    const at = log.length;
    log.store.set(chunkKey('s', at), junk);
    assert.equal(log.length, at);
    assert.deepEqual(log.plan(at, events, chained('s', events.slice(0, at))), {
      answer: { diverged: at },
      writes: new Map()
    });
    const first = new SessionLog(memory(), 's');
    first.store.set(chunkKey('s', 0), junk);
    assert.deepEqual(first.plan(0, events, sha256('s')), { answer: { diverged: 0 }, writes: new Map() });
  });

test('a chunk that lies beyond a hole is not written over', () => {
  const log = new SessionLog(memory(), 's');
  const sealed = 'x'.repeat(SEAL);
  log.store.set(chunkKey('s', 2), ['{"lies":"there"}']);
  assert.deepEqual(put(log, 0, [sealed]), { length: 1 });
  assert.deepEqual(log.plan(1, [sealed, '{}'], chained('s', [sealed])), { answer: { diverged: 2 }, writes: new Map() });
});

test('pages are bounded and add up to the log; a line longer than a page travels alone', () => {
  const log = new SessionLog(memory(), 's'),
    lines = [...events, 'y'.repeat(9000), ...numbered(5)];
  put(log, 0, lines);
  const got = [];
  while (got.length < lines.length) {
    const page = log.page(got.length, 5000);
    assert.equal(page.length, lines.length);
    assert.ok(page.events.length === 1 || page.events.join('').length <= 5000);
    got.push(...page.events);
  }
  assert.deepEqual(got, lines);
});

// -- the plan fold

let seq = 0;
const event = (type, data) => JSON.stringify({ type, seq: seq++, time: 1, data });
const mode = active => event('plan/mode', { active });
const selected = active => event('plan/selected', { active, narrate: true });
const command = (args, kind = 'success', id = `c${seq}`, name = 'plan') => [
  event('command/run', { commandId: id, name, args, source: 'magic' }),
  event('command/done', { commandId: id, kind, text: '' })
];
const fold = lines => {
  const { active, pending } = foldPlan(lines.flat());
  return { active, pending };
};

for (const [rule, lines, active, pending] of [
  ['nothing logged is inactive', [], false, null],
  ['the last plan/mode is the state', [mode(true), mode(false), mode(true)], true, null],
  ['a selection is pending', [selected(true)], false, true],
  ['a selection of what is, is not pending', [mode(true), selected(false), selected(true)], true, null],
  ['a switch clears the selection', [selected(true), mode(true)], true, null],
  [
    "others' events move nothing, whatever they quote",
    [event('user/message', { content: [{ type: 'text', text: '"plan/mode"' }], active: true })],
    false,
    null
  ],
  ['a successful plan command is the pending choice', [command('add tests')], false, true],
  ['an empty argument selects plan mode', [command('')], false, true],
  ['off in any case and spacing leaves', [mode(true), command('  OFF ')], true, false],
  ['anything longer than off is a message', [command('off the legacy API')], false, true],
  ['a command for what is, leaves nothing pending', [mode(true), command('on')], true, null],
  ['a failed command chooses nothing', [command('x', 'error')], false, null],
  ['a failed command leaves the choice before it', [command('x'), command('off', 'error')], false, true],
  ['an open command chooses nothing yet', [command('x')[0]], false, null],
  ['another command is not a choice', [command('off', 'success', 'c', 'compact')], false, null],
  [
    'a switch within the command is what it chose',
    [command('x')[0].replace(/c\d+/, 'k'), mode(true), event('command/done', { commandId: 'k', kind: 'success' })],
    true,
    null
  ],
  ['a switch after it clears it', [command('x'), mode(true)], true, null],
  [
    'once a selection is logged, commands no longer count',
    [selected(true), command('off'), mode(true), command('off')],
    true,
    null
  ],
  ['a selection replaces what commands chose', [command('x'), selected(false)], false, null],
  [
    'of two open commands the later one counts',
    [mode(true), command('x', 'success', 'a')[0], command('off', 'success', 'b'), command('x', 'success', 'a')[1]],
    true,
    false
  ]
])
  test(`fold: ${rule}`, () => assert.deepEqual(fold(lines), { active, pending }));

test('the fold resumes at any split, and does not change what it starts from', () => {
  const lines = [
    command('x'),
    mode(true),
    command('off'),
    selected(false),
    mode(false),
    selected(true),
    command('off')
  ].flat();
  for (let i = 0; i <= lines.length; i++) {
    const first = foldPlan(lines.slice(0, i)),
      copy = structuredClone(first);
    assert.deepEqual(foldPlan(lines.slice(i), first), foldPlan(lines));
    assert.deepEqual(structuredClone(first), copy);
  }
  assert.deepEqual(foldPlan([]), unplanned());
});

for (const value of [1, 'true', null, undefined])
  test(`a plan event carrying ${value} is refused, never read by truthiness`, () => {
    assert.throws(() => foldPlan([mode(value)]), TypeError);
    assert.throws(() => foldPlan([selected(value)]), TypeError);
  });
