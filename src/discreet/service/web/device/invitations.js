// Ask for a token without showing what it will be for: blind RSA signatures, RSABSSA-SHA384-PSS-Randomized of RFC 9474.
// What is computed here is this device's own secret for a moment; nobody can time it from outside.

import { systemBytes } from "./draws.js";

const EXPONENT = 65537n;
const PREFIX_BYTES = 32;
const HASH_BYTES = 48;
const SALT_BYTES = 48;
const CODE = /^[a-z2-7]{24}$/;

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const numberOf = (bytes) => BigInt(`0x${hex(bytes) || "0"}`);
const bytesOf = (number, size) => fromHex(number.toString(16).padStart(2 * size, "0"));
const sha384 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));

/** Tell whether a text has the form of an invitation. */
export const isCode = (text) => CODE.test(text);

/** Draw the request by which a sender asks for its token; keep it until the token has come. */
export async function requestToken(campaign, sender, code, source = systemBytes) {
  const { modulus, size } = campaign.invitations;
  const prefix = source(PREFIX_BYTES);
  const encoded = numberOf(await encode(joined(prefix, message(campaign, sender)), size, source(SALT_BYTES)));
  // A factor in common with the modulus would stand in the blinded number and in the signature.
  if (inverted(encoded, modulus) === null) {
    throw new Error("The key of invitations shares a factor with the request; nothing was asked.");
  }
  const [inverse, factor] = blinding(modulus, size, source);
  const blinded = (encoded * power(factor, EXPONENT, modulus)) % modulus;
  return { code, prefix: hex(prefix), inverse: inverse.toString(16), blinded: hex(bytesOf(blinded, size)) };
}

/** Return the token in a service's answer, and throw if it is not signed under the campaign's key. */
export async function tokenOf(campaign, sender, request, { signature }) {
  const { modulus, size } = campaign.invitations;
  const answer = typeof signature === "string" && /^[0-9a-f]+$/.test(signature) ? BigInt(`0x${signature}`) : 0n;
  const opened = bytesOf((answer * BigInt(`0x${request.inverse}`)) % modulus, size);
  const prefix = fromHex(request.prefix);
  const key = await crypto.subtle.importKey(
    "jwk",
    { kty: "RSA", alg: "PS384", n: base64url(bytesOf(modulus, size)).replaceAll("=", ""), e: "AQAB" },
    { name: "RSA-PSS", hash: "SHA-384" },
    false,
    ["verify"],
  );
  const kind = { name: "RSA-PSS", saltLength: SALT_BYTES };
  const right = await crypto.subtle.verify(kind, key, opened, joined(prefix, message(campaign, sender)));
  if (!right) throw new Error("The service's answer is no signature under the key in its campaign.");
  return base64url(joined(prefix, opened));
}

const message = (campaign, sender) =>
  joined(new TextEncoder().encode("discreet invitation\0"), campaign.digest, sender);

const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");

/** Return a random number below the modulus and its inverse. */
function blinding(modulus, size, source) {
  for (;;) {
    const drawn = numberOf(source(size));
    const inverse = drawn > 0n && drawn < modulus ? inverted(drawn, modulus) : null;
    if (inverse !== null) return [drawn, inverse];
  }
}

function inverted(number, modulus) {
  let [left, right, one, other] = [modulus, number, 0n, 1n];
  while (right > 0n) {
    const times = left / right;
    [left, right, one, other] = [right, left - times * right, other, one - times * other];
  }
  return left === 1n ? ((one % modulus) + modulus) % modulus : null;
}

function power(base, exponent, modulus) {
  let [result, square] = [1n, base % modulus];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The encoding EMSA-PSS of RFC 8017 for a key of whole bytes, with SHA-384. */
async function encode(text, size, salt) {
  const inner = await sha384(joined(new Uint8Array(8), await sha384(text), salt));
  const length = size - HASH_BYTES - 1;
  const block = joined(new Uint8Array(length - SALT_BYTES - 1), [1], salt);
  const mask = await masking(inner, length);
  const masked = block.map((byte, at) => byte ^ mask[at]);
  masked[0] &= 0x7f;
  return joined(masked, inner, [0xbc]);
}

async function masking(seed, length) {
  const blocks = Array.from({ length: Math.ceil(length / HASH_BYTES) }, (_, at) => sha384(joined(seed, [0, 0, 0, at])));
  return joined(...(await Promise.all(blocks))).subarray(0, length);
}
