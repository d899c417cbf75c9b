/** The id of an item, as the model's catalog has it. */
export type ItemId = string | number;

/** An item that a person chose or rated; times decide the order where all entries have them. */
export interface Entry {
  readonly item: ItemId;
  readonly rating?: number;
  readonly time?: number;
}

/** Read oldest first: ids, pairs of id and rating, or entries. */
export type History = Iterable<ItemId | readonly [ItemId, number] | Entry>;

export interface Order {
  /** Whether the history has an order: recent items count more. Default: true. */
  readonly ordered?: boolean;
  /** Leave out items of the history that the model does not know. Default: false, which refuses them. */
  readonly ignoreUnknown?: boolean;
}

export interface Wanted extends Order {
  /** How many items. Default: 10. */
  readonly k?: number;
  /** Whether items of the history are left out. Default: true. */
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
  /** The rating that the person is expected to give, where the model knows one. */
  readonly stars?: number;
}

/** What a model promises, as `discreet label` shows it. */
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

export class Recommender {
  constructor(parts: { model: ArrayBuffer; items: Items; label?: Label | null; about?: About | null });
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
  /** How a file is read; by default with `fetch`. */
  readonly read?: (url: URL) => Promise<ArrayBuffer>;
}

export function openBundle(base?: URL | string, opening?: Opening): Promise<Recommender>;
export function bestPlaces(scores: Float32Array, closed: Uint8Array, k: number): number[];
