import { isIPv6 } from "node:net";

/** Key of a caller: its IPv4 address, or its IPv6 network of 64 bits, because one customer has the whole network. */
export function addressKey(address: string): string {
  // The first test is for speed: this is called several times for each request.
  if (!address.includes(":") || !isIPv6(address)) return address;
  const [head = "", tail] = address.toLowerCase().split("%", 1)[0]?.split("::") ?? [];
  const left = head.split(":").filter((group) => group !== "");
  const right = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros =
    tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0");
  return `${[...left, ...zeros, ...right].slice(0, 4).join(":")}::/64`;
}
