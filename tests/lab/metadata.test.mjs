import assert from 'node:assert/strict';
import test from 'node:test';

import { chunkKey } from '../../plan_mode_nb/hosts/lab/labextension/lib/log.js';
import {
  NotebookLog,
  attachmentKey,
  isAppend,
  isIndex,
  mainSession
} from '../../plan_mode_nb/hosts/lab/labextension/lib/metadata.js';
import { chained, memory, numbered } from './memory.mjs';

const events = numbered(120);
const mode = (seq, active) => JSON.stringify({ type: 'plan/mode', seq, time: 1, data: { active } });
const message = (start, lines, before = events.slice(0, start), more = {}) => ({
  op: 'append',
  n: 1,
  to: 'page',
  session: 's',
  start,
  events: lines,
  prev: chained('s', before),
  header: { version: 0, id: 's' },
  agents: { main: 's' },
  ...more
});

test('the first append writes the index, its sessions and the chunks', () => {
  const log = new NotebookLog(memory());
  assert.deepEqual(log.append(message(0, events.slice(0, 3))), { length: 3 });
  assert.deepEqual(
    [...log.store.entries],
    [
      ['plan_mode_nb/s/0000000', events.slice(0, 3)],
      ['plan_mode_nb', { format: 1, agents: { main: 's' }, sessions: { s: { version: 0, id: 's' } } }]
    ]
  );
});

test('a later append writes its chunk and nothing else', () => {
  const store = memory(),
    log = new NotebookLog(store),
    written = [];
  log.append(message(0, events.slice(0, 3)));
  const { set } = store;
  store.set = (key, value) => {
    written.push(key);
    set(key, value);
  };
  assert.deepEqual(log.append(message(3, events.slice(3, 5))), { length: 5 });
  assert.deepEqual(written, ['plan_mode_nb/s/0000000']);
});

test('an append for another session keeps the first, its header and its events', () => {
  const log = new NotebookLog(memory());
  log.append(message(0, events));
  const other = {
    ...message(0, ['{}'], []),
    session: 't',
    prev: chained('t', []),
    header: { id: 't' },
    agents: { main: 't', helper: 's' }
  };
  assert.deepEqual(log.append(other), { length: 1 });
  const index = log.store.get('plan_mode_nb');
  assert.deepEqual(index, {
    format: 1,
    agents: { main: 't', helper: 's' },
    sessions: { s: { version: 0, id: 's' }, t: { id: 't' } }
  });
  assert.deepEqual([...log.of('s').lines(0)], events);
});

test('agents that the kernel does not name stay in the index, and so does what this version does not know', () => {
  const index = { format: 1, agents: { main: 'old', helper: 'h' }, sessions: { old: {} }, later: [1] };
  const log = new NotebookLog(memory({ plan_mode_nb: index }));
  log.append(message(0, events.slice(0, 1), []));
  const { agents, later } = log.store.get('plan_mode_nb');
  assert.deepEqual([agents, later], [{ main: 's', helper: 'h' }, [1]]);
});

test('writes that belong together are one transaction, and a refusal opens none', () => {
  let transactions = 0;
  const log = new NotebookLog(memory(), write => {
    transactions += 1;
    write();
  });
  log.append(message(0, events, [], { attachments: { ['a'.repeat(64)]: 'aGk=' } }));
  log.append(message(500, events, events));
  log.append(message(0, ['{}']));
  assert.equal(transactions, 1);
});

test('attachments are written once, under their digest only', () => {
  const log = new NotebookLog(memory()),
    sha = '0f'.repeat(32);
  log.append(message(0, events.slice(0, 1), [], { attachments: { [sha]: 'aGk=', 'not-a-digest': 'x' } }));
  log.append(message(1, events.slice(1, 2), events.slice(0, 1), { attachments: { [sha]: 'b3RoZXI=' } }));
  assert.equal(log.store.get(attachmentKey(sha)), 'aGk=');
  assert.equal(log.store.get(attachmentKey('not-a-digest')), undefined);
});

test('a stripped session never returns, at any position', () => {
  const index = { format: 1, agents: {}, sessions: {}, stripped: ['s'] };
  const log = new NotebookLog(memory({ plan_mode_nb: index }));
  const gone = { diverged: 0, stripped: true };
  for (const start of [0, 40]) assert.deepEqual(log.append(message(start, events.slice(start))), gone);
  const fork = { session: 's~1~0123456789ab', prev: chained('s~1~0123456789ab', []) };
  assert.deepEqual(log.append(message(0, events, [], fork)), gone);
  assert.deepEqual([...log.store.entries], [['plan_mode_nb', index]]);
});

test('an append of no event moves a name, unless it was sent elsewhere more often than the kernel knows', () => {
  const log = new NotebookLog(memory());
  log.append(message(0, events));
  const moved = count => message(120, [], events, { agents: { main: 't' }, chosen: { main: count } });
  assert.deepEqual(log.append(moved(2)), { length: 120 });
  const { agents, chosen } = log.store.get('plan_mode_nb');
  assert.deepEqual([agents, chosen], [{ main: 't' }, { main: 2 }]);
  log.append({ ...moved(1), agents: { main: 'u' } });
  log.append(message(120, [], events));
  assert.deepEqual(log.store.get('plan_mode_nb').agents, { main: 't' });
  log.append({ ...moved(2), agents: { main: 'u' } });
  assert.deepEqual(log.store.get('plan_mode_nb').agents, { main: 'u' });
});

test('a refused append touches nothing, the index included', () => {
  const log = new NotebookLog(memory());
  log.append(message(0, events.slice(0, 50)));
  const before = structuredClone([...log.store.entries]);
  const agents = { agents: { main: 'elsewhere' }, header: { id: 'other' }, attachments: { ['a'.repeat(64)]: 'aGk=' } };
  assert.deepEqual(log.append(message(60, events.slice(60), [], agents)), { want: 50 });
  assert.deepEqual(log.append(message(50, events.slice(50), ['{}'], agents)), { diverged: 50 });
  assert.deepEqual(log.append(message(10, ['{}'], [], agents)), { diverged: 10 });
  assert.deepEqual([...log.store.entries], before);
});

const wrong = [
  null,
  1,
  'x',
  [],
  true,
  {},
  { format: 2, agents: {}, sessions: {} },
  { format: 1 },
  { format: 1, agents: {} },
  { format: 1, agents: [], sessions: {} },
  { format: 1, agents: { main: 4 }, sessions: {} },
  { format: 1, agents: {}, sessions: [] },
  { format: 1, agents: {}, sessions: { s: 'x' } },
  { format: 1, agents: {}, sessions: {}, stripped: 's' },
  { format: 1, agents: {}, sessions: {}, chosen: [] },
  { format: 1, agents: {}, sessions: {}, chosen: { main: 'x' } },
  { format: 1, agents: {}, sessions: {}, stripped: [1] }
];
for (const index of wrong)
  test(`an index of the shape ${JSON.stringify(index)} is left as it is, hides the chip and takes no append`, () => {
    const content = { plan_mode_nb: index, 'plan_mode_nb/s/0000000': [mode(0, true)] };
    const log = new NotebookLog(memory(content));
    assert.equal(isIndex(index), false);
    assert.equal(log.plan(), null);
    assert.deepEqual(log.hello(), { session: '', length: 0 });
    assert.deepEqual(log.append(message(1, ['{}'])), { diverged: 0 });
    assert.deepEqual(log.page({}), { index, session: '', start: 0, events: [], length: 0 });
    assert.deepEqual(Object.fromEntries(log.store.entries), content);
  });

test('an index whose main names nothing, or something that can be no key, has no session', () => {
  for (const main of ['', 'a/b', 'attachments', '__proto__', undefined])
    assert.equal(
      mainSession(memory({ plan_mode_nb: JSON.parse(JSON.stringify({ format: 1, agents: { main }, sessions: {} })) })),
      ''
    );
  assert.equal(mainSession(memory({ plan_mode_nb: { format: 1, agents: { helper: 's' }, sessions: {} } })), '');
});

const index = { format: 1, agents: { main: 's' }, sessions: { s: {} } };
test('plan mode is folded from the main session, and again only from its last chunk on', () => {
  const store = memory(),
    log = new NotebookLog(store);
  assert.deepEqual({ ...log.plan() }.active, false);
  log.append(message(0, [mode(0, true)], []));
  assert.equal(log.plan().active, true);
  log.append(message(1, numbered(300), [mode(0, true)]));
  assert.equal(log.plan().active, true);
  const read = [],
    { get } = store;
  store.get = key => {
    read.push(key);
    return get(key);
  };
  assert.equal(log.plan().active, true);
  assert.ok(!read.includes(chunkKey('s', 0)));
});

test('a chunk that somebody else rewrote is folded anew', () => {
  const store = memory(),
    log = new NotebookLog(store);
  log.append(message(0, [mode(0, true), ...numbered(300)], []));
  log.plan();
  store.set(chunkKey('s', 0), [mode(0, false), ...store.get(chunkKey('s', 0)).slice(1)]);
  log.changed(chunkKey('s', 0));
  assert.equal(log.plan().active, false);
});

test('a log that is not of events hides the chip', () => {
  for (const chunk of [['{"plan/mode"'], [mode(0, 1)], [mode(0, 'true')], ['{"type":"plan/mode"}'], [7], {}, 'x', []])
    assert.equal(new NotebookLog(memory({ plan_mode_nb: index, 'plan_mode_nb/s/0000000': chunk })).plan(), null);
});

test('a message of a wrong shape is no append', () => {
  const good = message(0, events);
  assert.ok(isAppend(good));
  for (const change of [
    { session: '' },
    { session: 3 },
    { session: 'attachments' },
    { session: 'a/b' },
    { start: -1 },
    { start: 1.5 },
    { start: '0' },
    { prev: null },
    { events: 'x' },
    { events: [1] },
    { header: null },
    { header: [] },
    { agents: { main: 1 } },
    { agents: null },
    { attachments: [] },
    { attachments: { a: 1 } },
    { images: 'x' },
    { images: ['x'] }
  ])
    assert.equal(isAppend({ ...good, ...change }), false, JSON.stringify(change));
  for (const other of [null, 'x', 5, []]) assert.equal(isAppend(other), false);
});

test('get answers the main session from the start, or the session and position asked for', () => {
  const log = new NotebookLog(memory());
  log.append(message(0, events));
  const { index, ...page } = log.page({});
  assert.deepEqual(index.agents, { main: 's' });
  assert.deepEqual(page, { session: 's', start: 0, events, length: 120, lengths: { s: 120 } });
  assert.deepEqual(log.page({ start: 100 }).events, events.slice(100));
  assert.deepEqual(log.page({ session: 't' }).length, 0);
  assert.deepEqual(log.page({ session: 7, start: 'x' }).events, events);
  assert.deepEqual(new NotebookLog(memory()).page({}), { index: null, session: '', start: 0, events: [], length: 0 });
});

test('the first page says how long every session is, hello that there are more, and a page that its session is damaged', () => {
  const log = new NotebookLog(memory());
  log.append(message(0, events));
  assert.deepEqual(log.hello(), { session: 's', length: 120 });
  log.append({ ...message(0, ['{}'], []), session: 't', prev: chained('t', []), agents: { helper: 't' } });
  assert.deepEqual(log.hello(), { session: 's', length: 120, more: true });
  assert.deepEqual(log.page({}).lengths, { s: 120, t: 1 });
  assert.equal(log.page({ start: 100 }).lengths, undefined);
  assert.equal(log.page({ session: 't' }).damaged, undefined);
  log.store.set(chunkKey('t', 1), 'no list');
  log.changed(chunkKey('t', 1));
  assert.equal(log.page({ session: 't' }).damaged, true);
});

const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(digit => digit.repeat(64));
test('get answers images in the order asked for, as many as fit, and null for what is not here or cannot be sent', () => {
  const base64 = 'QUJD'.repeat(100_000);
  const log = new NotebookLog(
    memory({ [attachmentKey(a)]: base64, [attachmentKey(b)]: base64, [attachmentKey(c)]: base64, [attachmentKey(d)]: '<b>' })
  );
  const keys = images => Object.keys(log.page({ images }).attachments);
  assert.deepEqual(log.page({ images: [a] }), { attachments: { [a]: base64 } });
  assert.deepEqual(keys([a, b, c]), [a, b]);
  assert.deepEqual(keys([c, d, '0'.repeat(64)]), [c, d, '0'.repeat(64)]);
  assert.deepEqual(log.page({ images: [d, '0'.repeat(64)] }).attachments, { [d]: null, ['0'.repeat(64)]: null });
  log.store.set(attachmentKey(d), 'QUJD'.repeat(2_000_000));
  assert.deepEqual(log.page({ images: [d] }).attachments, { [d]: null });
  assert.deepEqual(log.page({ images: ['__proto__'] }), { attachments: {} });
});

test('an append that asks about images is told which are lacking, once its events are taken', () => {
  const log = new NotebookLog(memory({ [attachmentKey(a)]: 'QUJD' }));
  assert.deepEqual(log.append(message(0, events, [], { images: [a] })), { length: 120 });
  assert.deepEqual(log.append(message(120, [], events, { images: [a, b], attachments: { [c]: 'QUJD' } })), { length: 120, lacks: [b] });
  assert.deepEqual(log.append(message(120, [], events, { images: [b, c] })), { length: 120, lacks: [b] });
  assert.deepEqual(log.append(message(500, events, events, { images: [b] })), { want: 120 });
});

test('an index too big to send is not sent', () => {
  const log = new NotebookLog(memory({ plan_mode_nb: { format: 9, blob: 'x'.repeat(3_000_000) } }));
  assert.equal(log.page({}).index, false);
});
