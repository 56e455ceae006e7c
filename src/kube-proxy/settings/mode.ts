import { text } from '../../diagnostics/json-schema.ts';
import { oneOf } from '../../base/json-shape.ts';
import { proxyModeNames, proxyModes } from '../modes.ts';
import { field } from './field.ts';
import { textFlag } from './flag.ts';
import { setting } from './setting.ts';

/** The mode. All other settings depend on it, so kpc chooses it before them (src/input/configuration/settings.ts). */
export const mode = setting({
  flags: [
    textFlag(
      '--proxy-mode <mode>',
      `${proxyModeNames} (default: as the config says, iptables if it names none, ipvs without a config)`,
      { rank: -2 },
    ),
  ],
  fields: [field('mode', text)],
  defaultIn: (chosen) => chosen,
  read: (source) => source.mode,
  stored: oneOf(...proxyModes),
});
