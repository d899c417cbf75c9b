// Keep answers on this device, so that no reload, crash or second tab ever draws one again.

import { openStorage } from "../shared/storage.js";

const STORES = { answers: ["campaign", "item"], catalogs: "campaign", campaigns: "campaign", settings: "name" };

/** Open what this device keeps: `answers` by campaign and item, `catalogs` and `campaigns` by campaign, `settings`. */
export const openKeeping = () => openStorage("discreet", 1, STORES);

/** Run alone among all tabs of this page. */
export const alone = (work) => navigator.locks.request("discreet", work);
