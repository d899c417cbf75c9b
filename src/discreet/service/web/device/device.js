// Answer a discreet campaign where the person is: nothing here speaks to the network or remembers anything.

export { answerCatalog, answerRating, nearestStep, priceOf, shownAs } from "./answers.js";
export { CampaignError, openCampaign } from "./campaign.js";
export { drawFromRow, drawGap, pretendingCells, sampleItems, systemBytes, uniformBelow } from "./draws.js";
export { expAbove, expBelow, fractionOf, keeps, largestRatio } from "./exact.js";
export { isCode, requestToken, tokenOf } from "./invitations.js";
export { inEnvelope, writeCatalog, writeRatings } from "./wire.js";
