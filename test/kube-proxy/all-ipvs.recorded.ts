import { compareAll } from './compare-all.ts';

compareAll('ipvs');
