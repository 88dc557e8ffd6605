import assert from 'node:assert/strict';
import test from 'node:test';

import { chipText } from '../../plan_mode_nb/hosts/lab/labextension/lib/chip.js';

const chip = (active, pending = null, asked = null, late = false) =>
  chipText({ state: { active, pending }, asked, late, target: asked ?? pending ?? active });

for (const [rule, carrier, shown, text, select] of [
  ['hidden when inactive with nothing pending', [false], false, 'Plan', true],
  ['active: a click leaves', [true], true, 'Plan ×', false],
  ['pending entry: a click cancels it', [false, true], true, 'Plan (on from next step) ×', false],
  ['pending exit: a click stays', [true, false], true, 'Plan (off from next step)', true],
  ['asked, unanswered', [true, null, false], true, 'Plan (off …)', true],
  ['asked during an ordinary cell', [true, null, false, true], true, 'Plan (off when this cell ends)', true],
  ['asked on during an ordinary cell', [false, null, true, true], true, 'Plan (on when this cell ends) ×', false],
  [
    'a pending entry taken back during an ordinary cell',
    [false, true, false, true],
    true,
    'Plan (when this cell ends)',
    true
  ]
])
  test(`the chip, ${rule}`, () => {
    const { shown: isShown, text: isText, select: isSelect, name } = chip(...carrier);
    assert.deepEqual([isShown, isText, isSelect], [shown, text, select]);
    assert.match(name, /^Plan mode (on|off)( \(.+\))?\. (Leave plan mode|Stay in plan mode|Turn plan mode on)$/);
  });
