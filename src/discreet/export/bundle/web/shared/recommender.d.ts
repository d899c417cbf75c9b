/** The ID of an item, as text or as a number: 7 and "7" find the same item if the catalog has one of them. */
export type ItemId = string | number;

/** An item that a user chose or rated; times decide the order where all entries have them. */
export interface Entry {
  readonly item: ItemId;
  readonly rating?: number;
  readonly time?: number;
}

/** Read oldest first: ids, pairs of id and rating, or entries; not a text. */
export type History = object & Iterable<ItemId | readonly [ItemId, number] | Entry>;

export interface Order {
  /** Whether the history has an order: recent items count more. Default: true. */
  readonly ordered?: boolean;
  /** Skip items of the history that the model doesn't know. Default: false, which throws UnknownItemsError. */
  readonly ignoreUnknown?: boolean;
  /** When the list is requested, if entries have times: a Date, or an epoch time. Default: no time has passed. */
  readonly now?: Date | number | null;
}

export interface Wanted extends Order {
  /** How many items. Default: 10. */
  readonly k?: number;
  /** Whether to skip items of the history. Default: true. */
  readonly excludeSeen?: boolean;
  /** Items never to list. */
  readonly exclude?: Iterable<ItemId>;
  /** List only these. */
  readonly among?: Iterable<ItemId> | null;
}

export interface Listed {
  readonly item: ItemId;
  readonly title: string;
  /** What the list is sorted by. */
  readonly score: number;
  /** The rating that the user is expected to give, where the model knows one. */
  readonly stars?: number;
}

/** What a model guarantees, as `discreet model label` shows it. */
export interface Label {
  readonly name: string;
  readonly sentence: string;
  readonly rows: readonly (readonly [string, string])[];
  readonly guarantee: Readonly<Record<string, unknown>>;
}

/** How lists in a precision agree with those of the model. */
export interface Precision {
  readonly file: string;
  readonly bytes: number;
  readonly shared_at_10: number;
  readonly equal_lists: number;
  readonly lists: number;
  readonly histories: string;
}

export interface About {
  readonly format: "discreet-bundle";
  readonly version: 1;
  readonly name: string;
  readonly items: number;
  /** The precision that is opened unless another is asked for. */
  readonly precision: string;
  readonly models: Readonly<Record<string, Precision>>;
}

export interface Items {
  readonly ids: readonly ItemId[];
  readonly titles?: readonly string[] | null;
}

export class BundleError extends Error {}

/** Items that the model's catalog doesn't have. */
export class UnknownItemsError extends RangeError {
  readonly code: "unknown-items";
  readonly items: readonly ItemId[];
}

/** Bytes of a file: an ArrayBuffer, or a view such as Uint8Array and Node's Buffer. */
export type Bytes = ArrayBuffer | ArrayBufferView;

export class Recommender {
  constructor(parts: { model: Bytes; items: Items; label?: Label | null; about?: About | null });
  readonly ids: readonly ItemId[];
  readonly titles: readonly string[] | null;
  readonly label: Label | null;
  readonly about: About | null;
  readonly precision: string;
  readonly needsRatings: boolean;
  readonly rankedBy: string;
  readonly ratings: readonly number[];
  titleOf(id: ItemId): string;
  has(id: ItemId): boolean;
  scores(history: History, order?: Order): Float32Array;
  recommend(history: History, wanted?: Wanted): Listed[];
}

export interface Opening {
  readonly precision?: "int8" | "float16" | "float32";
  /** Return the bytes of a file. Default: `fetch`, and Node's `readFile` for file: addresses. */
  readonly read?: (url: URL) => Bytes | Promise<Bytes>;
}

export function openBundle(base?: URL | string, opening?: Opening): Promise<Recommender>;
export function bestPlaces(scores: Float32Array, closed: Uint8Array, k: number): number[];
