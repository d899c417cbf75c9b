/** Returns so many fresh random bytes. */
export type Source = (count: number) => Uint8Array;

/** A ratio of two probabilities, exactly. */
export interface Ratio {
  readonly top: bigint;
  readonly bottom: bigint;
}

/** Chances of the binary digits of a gap, in units of 2^-128. */
export interface Gap {
  readonly high: BigUint64Array;
  readonly low: BigUint64Array;
}

interface Shared {
  readonly name: string;
  readonly epsilon: number;
  readonly items: readonly string[];
  readonly ratings: readonly number[];
  readonly outcomes: number;
  readonly first: number;
  readonly width: number;
  readonly digest: Uint8Array;
  /** The largest ratio of its tables; at most e^epsilon, or the campaign is not opened. */
  readonly ratio: Ratio;
  /** The key under which tokens of invited devices are signed; null if anybody may send. */
  readonly invitations: InvitationKey | null;
}

export interface InvitationKey {
  readonly modulus: bigint;
  /** The length of a signature in bytes. */
  readonly size: number;
}

/** A request for a token; keep it until the token has come, since a code is good for one request. */
export interface TokenRequest {
  readonly code: string;
  readonly prefix: string;
  readonly inverse: string;
  readonly blinded: string;
}

/** Asks for ratings; which items were rated is told. */
export interface RatingsCampaign extends Shared {
  readonly kind: "ratings";
  readonly maxReports: number;
  readonly rows: readonly BigUint64Array[];
}

/** Asks about a whole catalog; not even what was rated is told. */
export interface CatalogCampaign extends Shared {
  readonly kind: "catalog";
  readonly answers: number | null;
  readonly gap: Gap;
  readonly rows?: readonly BigUint64Array[];
  readonly coin?: BigUint64Array;
  readonly noise?: BigUint64Array;
  readonly half?: number;
  readonly reach?: number;
}

export type Campaign = RatingsCampaign | CatalogCampaign;

/** The one answer to a campaign over a catalog. */
export interface CatalogAnswer {
  readonly asked: readonly number[] | null;
  readonly items: readonly number[];
  readonly codes: readonly number[];
}

export class CampaignError extends Error {}

export function openCampaign(bytes: Uint8Array): Promise<Campaign>;
export function nearestStep(campaign: Campaign, rating: number): number;
export function shownAs(campaign: Campaign, code: number): number;
export function priceOf(campaign: Campaign): { answer: number; most: number; person: number };
export function answerRating(campaign: RatingsCampaign, rating: number, source?: Source): number;
export function answerCatalog(
  campaign: CatalogCampaign,
  history: Iterable<readonly [number, number]>,
  source?: Source,
): CatalogAnswer;

export function systemBytes(count: number): Uint8Array;
export function drawFromRow(starts: BigUint64Array, source?: Source): number;
export function drawGap(gap: Gap, source?: Source): number;
export function uniformBelow(bound: number, source?: Source): number;
export function pretendingCells(gap: Gap, cells: number, source?: Source): number[];
export function sampleItems(total: number, count: number, source?: Source): number[];

export function fractionOf(number: number): Ratio;
export function expBelow(top: bigint, bottom: bigint): bigint;
export function expAbove(top: bigint, bottom: bigint): bigint;
export function largestRatio(rows: readonly (readonly bigint[])[]): Ratio;
export function keeps(ratio: Ratio, epsilon: number): boolean;

export function writeRatings(
  campaign: RatingsCampaign,
  sender: Uint8Array,
  answers: Iterable<readonly [number, number]>,
): Uint8Array;
export function writeCatalog(campaign: CatalogCampaign, sender: Uint8Array, answer: CatalogAnswer): Uint8Array;
export function inEnvelope(message: Uint8Array): Uint8Array;

export function isCode(text: string): boolean;
export function requestToken(campaign: Campaign, sender: Uint8Array, code: string, source?: Source): Promise<TokenRequest>;
export function tokenOf(
  campaign: Campaign,
  sender: Uint8Array,
  request: TokenRequest,
  answer: { signature: string },
): Promise<string>;
